// The parts of a Terraform template's manifest that a template.yaml cannot express. Only the import writes them, so there are types but no
// schema.

export type GeneratedApp = {
  /** The ID in Terraform's state, which is stable between builds. */
  readonly id?: string;
};

export type GeneratedAgent = {
  /** `all`, or `no_user_data`: the agent gets no tokens and keys of the workspace's owner. */
  readonly api_key_scope?: string;
};

export type GeneratedResource = {
  /** The address of the resource's module, such as `module.box[0]`; absent for the root module. */
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
    /** The program that imported the template: `terraform` or `tofu`. */
    readonly program: string;
    readonly version: string;
    /** The ID of the upload with the template's modules and lock file; absent if it has none. */
    readonly cache_file?: string;
    /** True if parameters depend on each other, on the owner or on other data, so that only a plan determines them. */
    readonly is_dynamic: boolean;
    readonly has_external_agent: boolean;
    /** True when the folder `slipway-snapshot` has a module that copies the workspace's disks. */
    readonly has_snapshot_module?: boolean;
    /** The owner's secrets that the template references: `session_token`, `ssh_key`. Its builds get no others. */
    readonly needs: readonly string[];
    /** The names of all parameters, including parameters that apply only with some values of others. */
    readonly names: readonly string[];
    /** The addresses that must be planned to show a form. */
    readonly targets: readonly string[];
    /** Tags that depend on parameters. */
    readonly workspace_tags: Readonly<Record<string, string>>;
  };
};
