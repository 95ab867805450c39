// Parts of a manifest made from a Terraform template that a template.yaml cannot express. Written by the import, never by people, so it has
// types and no schema.

export type GeneratedApp = {
  /** The ID in Terraform's state, which is stable between builds. */
  readonly id?: string;
};

export type GeneratedAgent = {
  /** `all`, or `no_user_data`: the agent gets no tokens and keys of the workspace's owner. */
  readonly api_key_scope?: string;
};

export type GeneratedResource = {
  /** `module.box[0]`; absent for the root module. */
  readonly module_path?: string;
};

export type GeneratedParameter = {
  /** Form styling as written in the template: `placeholder`, `disabled` and so on. */
  readonly styling?: Readonly<Record<string, unknown>>;
  /** Its address as used in Terraform's diagnostics. */
  readonly address?: string;
};

export type GeneratedVariable = {
  /** Its type as written, such as `map(string)`. */
  readonly declared_type?: string;
};

/** Data about the whole template. */
export type GeneratedManifest<Resource> = {
  /** The resources that remain after a stop. */
  readonly stop_resources?: readonly Resource[];
  readonly terraform?: {
    /** The program that made the import: `terraform` or `tofu`. */
    readonly program: string;
    readonly version: string;
    /** The upload with its modules and lock file; absent if none exist. */
    readonly cache_file?: string;
    /** Parameters depend on each other, on their owner or on other data, so they are only known from a plan. */
    readonly is_dynamic: boolean;
    readonly has_external_agent: boolean;
    /** True when the folder `slipway-snapshot` has a module that copies the workspace's disks. */
    readonly has_snapshot_module?: boolean;
    /** The owner's secrets that its files reference: `session_token`, `ssh_key`. It gets no others. */
    readonly needs: readonly string[];
    /** Names of all its parameters, including parameters that apply only to some values. */
    readonly names: readonly string[];
    /** Addresses that must be planned for a form. */
    readonly targets: readonly string[];
    /** Tags that depend on parameters. */
    readonly workspace_tags: Readonly<Record<string, string>>;
  };
};
