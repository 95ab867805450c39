// What a manifest holds alongside what a template.yaml can say, when it was made from a Terraform template: written by the import, never by
// people, so it has types and no schema.

export type MadeApp = {
  /** That of Terraform's state: the same over builds. */
  readonly id?: string;
};

export type MadeAgent = {
  /** `all`, or `no_user_data`: the agent gets no tokens and keys of the workspace's owner. */
  readonly api_key_scope?: string;
};

export type MadeResource = {
  /** `module.box[0]`; absent for the root module. */
  readonly module_path?: string;
};

export type MadeParameter = {
  /** How a form shows it, as the template wrote it: `placeholder`, `disabled` and so on. */
  readonly styling?: Readonly<Record<string, unknown>>;
  /** Its address, as Terraform's diagnostics name it. */
  readonly address?: string;
};

export type MadeVariable = {
  /** Its type as written, such as `map(string)`. */
  readonly declared_type?: string;
};

/** Of the whole template. */
export type MadeManifest<Resource> = {
  /** The rest after a stop. */
  readonly stop_resources?: readonly Resource[];
  readonly terraform?: {
    /** `terraform` or `tofu`, which made the import. */
    readonly program: string;
    readonly version: string;
    /** The upload that holds its modules and lock file; absent when none exist. */
    readonly cache_file?: string;
    /** Parameters depend on each other, on their owner or on other data: they are known only by a plan. */
    readonly is_dynamic: boolean;
    readonly has_external_agent: boolean;
    /** The folder `slipway-snapshot` holds a module that copies the disks of its workspaces. */
    readonly has_snapshot_module?: boolean;
    /** Which secrets of the owner its files speak of: `session_token`, `ssh_key`. No others are handed to it. */
    readonly needs: readonly string[];
    /** Names of all its parameters, also of those that are asked for some values only. */
    readonly names: readonly string[];
    /** Addresses of what a form needs to be planned. */
    readonly targets: readonly string[];
    /** Tags that depend on parameters. */
    readonly workspace_tags: Readonly<Record<string, string>>;
  };
};
