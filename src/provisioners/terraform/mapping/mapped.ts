// Types for a plan or state in Slipway's terms. No member is optional, so that code that forgets a member does not compile.

export type MappedScript = {
  readonly display_name: string;
  readonly icon: string;
  readonly script: string;
  /** Six fields, seconds first, as in the template; empty for none. */
  readonly cron: string;
  readonly run_on_start: boolean;
  readonly run_on_stop: boolean;
  readonly start_blocks_login: boolean;
  /** Seconds; 0 for none. */
  readonly timeout: number;
  readonly log_path: string;
};

export type MappedApp = {
  /** The ID in the state, stable across builds; empty in a plan (facts/terraform 3.12). */
  readonly id: string;
  readonly slug: string;
  readonly display_name: string;
  readonly url: string;
  readonly command: string;
  readonly external: boolean;
  readonly subdomain: boolean;
  readonly hidden: boolean;
  readonly group: string;
  readonly icon: string;
  readonly tooltip: string;
  readonly order: number;
  readonly share: string;
  readonly open_in: string;
  readonly healthcheck: { readonly url: string; readonly interval: number; readonly threshold: number } | null;
};

export type MappedMetadata = {
  readonly key: string;
  readonly display_name: string;
  readonly script: string;
  readonly interval: number;
  readonly timeout: number;
  readonly order: number;
};

export type Monitors = {
  readonly memory: { readonly enabled: boolean; readonly threshold: number } | null;
  readonly volumes: readonly { readonly path: string; readonly enabled: boolean; readonly threshold: number }[];
};

export type MappedAgent = {
  readonly name: string;
  readonly os: string;
  readonly arch: string;
  readonly directory: string;
  readonly auth: string;
  readonly instance_id: string;
  /** Undefined in a plan, where it is unknown. Empty with cloud identity authentication. */
  readonly token: string | undefined;
  readonly env: Readonly<Record<string, string>>;
  readonly display_apps: readonly string[];
  readonly connection_timeout: number;
  readonly troubleshooting_url: string;
  readonly motd_file: string;
  readonly order: number;
  readonly api_key_scope: string;
  readonly metadata: readonly MappedMetadata[];
  readonly monitors: Monitors;
  readonly scripts: readonly MappedScript[];
  readonly apps: readonly MappedApp[];
  readonly devcontainers: readonly {
    readonly name: string;
    readonly workspace_folder: string;
    readonly config_path: string;
  }[];
};

export type MappedResource = {
  readonly type: string;
  readonly name: string;
  /** `module.box[0]`; empty for the root. */
  readonly module_path: string;
  readonly hide: boolean;
  readonly icon: string;
  readonly daily_cost: number;
  /** The size of a cloud machine, such as `t3.micro`; empty for other resources. */
  readonly instance_type: string;
  readonly metadata: readonly { readonly key: string; readonly value: string; readonly sensitive: boolean }[];
  readonly agents: readonly MappedAgent[];
};

export type MappedOption = {
  readonly name: string;
  readonly value: string;
  readonly description: string;
  readonly icon: string;
};

export type MappedParameter = {
  readonly name: string;
  readonly display_name: string;
  readonly description: string;
  readonly type: string;
  readonly form_type: string;
  readonly styling: Readonly<Record<string, unknown>>;
  readonly mutable: boolean;
  readonly default_value: string;
  readonly required: boolean;
  readonly ephemeral: boolean;
  readonly icon: string;
  readonly order: number;
  readonly options: readonly MappedOption[];
  readonly validation: {
    readonly regex: string;
    readonly min: number | null;
    readonly max: number | null;
    readonly monotonic: string;
    readonly error: string;
  };
  /** Any validation rule makes a number an integer (facts/terraform 4.7). */
  readonly is_integer: boolean;
  /** The value in this plan. */
  readonly value: string;
  /** The parameter's address, which Terraform's errors contain. */
  readonly address: string;
};

export type MappedPreset = {
  readonly name: string;
  readonly description: string;
  readonly icon: string;
  readonly default: boolean;
  readonly parameters: Readonly<Record<string, string>>;
  readonly prebuilds: {
    readonly instances: number;
    readonly ttl_seconds: number;
    readonly timezone: string;
    readonly schedule: readonly { readonly cron: string; readonly instances: number }[];
  };
};

/** Thrown for a template that cannot be used. The message is for the template's author. */
export class MappingError extends Error {
  override readonly name = "MappingError";
}
