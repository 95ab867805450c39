// Schema of template.yaml. The parser is src/provisioners/manifest.ts; the format is documented in that folder's README, and GET
// /api/v2/templates/schema serves this schema. Texts can contain placeholders, which are filled in for each build:
// {{ parameters.x }}, {{ variables.x }}, {{ workspace.name }}, {{ workspace.id }}, {{ workspace.port }}, {{ owner.username }},
// {{ owner.email }}.
import { type Static, Type as t } from "@sinclair/typebox";
import { codingAgentName } from "../ai/coding-agents.ts";
import { MAX_DURATION_MS } from "../fields.ts";
import { lineText, templatedIcon } from "../text.ts";
import type {
  GeneratedAgent,
  GeneratedApp,
  GeneratedManifest,
  GeneratedParameter,
  GeneratedResource,
  GeneratedVariable,
} from "./manifest-terraform.ts";

const closed = { additionalProperties: false };
const name = t.String({ pattern: "^[a-zA-Z0-9]+(?:[-_][a-zA-Z0-9]+)*$", minLength: 1, maxLength: 64 });
const text = t.String({ maxLength: 4096 });
const line = lineText({ maxLength: 4096 });
const icon = templatedIcon({ maxLength: 4096 });
const seconds = t.Integer({ minimum: 0, maximum: 2_592_000 });

const PARAMETER_NAME = "^[a-zA-Z_][a-zA-Z0-9_-]*(?: [a-zA-Z0-9_-]+)*$";

const scalar = t.Union([text, t.Number(), t.Boolean()]);

/** Required values of earlier parameters: name to the value, or to a list of allowed values. All must match. */
export const ManifestCondition = t.Record(
  t.String({ pattern: PARAMETER_NAME }),
  t.Union([scalar, t.Array(scalar, { minItems: 1, maxItems: 256 })]),
);

export const ManifestOption = t.Object(
  {
    name: text,
    value: text,
    description: t.Optional(text),
    icon: t.Optional(icon),
    /** Offered only if the condition holds. */
    when: t.Optional(ManifestCondition),
  },
  closed,
);

/** A parameter that is asked for when a workspace is created (or, if mutable, at each build). */
export const ManifestParameter = t.Object(
  {
    /** Words separated by single spaces. */
    name: t.String({ pattern: PARAMETER_NAME, maxLength: 128 }),
    display_name: t.Optional(line),
    description: t.Optional(text),
    icon: t.Optional(icon),
    type: t.Optional(t.Union([t.Literal("string"), t.Literal("number"), t.Literal("bool"), t.Literal("list(string)")])),
    form_type: t.Optional(text),
    /** Can be changed after the workspace was created. Default false. */
    mutable: t.Optional(t.Boolean()),
    /** Without a default, a value is required. Always text: "3", "true", "[\"a\"]". */
    default: t.Optional(t.Union([text, t.Number(), t.Boolean()])),
    /** Applies only if the condition holds; otherwise it has no value. */
    when: t.Optional(ManifestCondition),
    /** Conditional defaults: the first one whose condition holds is used, otherwise `default`. */
    defaults: t.Optional(t.Array(t.Object({ when: ManifestCondition, value: scalar }, closed), { maxItems: 64 })),
    /** Applies to this build only and is not stored. */
    ephemeral: t.Optional(t.Boolean()),
    options: t.Optional(t.Array(ManifestOption, { maxItems: 256 })),
    validation: t.Optional(
      t.Object(
        {
          regex: t.Optional(text),
          min: t.Optional(t.Integer()),
          max: t.Optional(t.Integer()),
          monotonic: t.Optional(t.Union([t.Literal("increasing"), t.Literal("decreasing")])),
          error: t.Optional(text),
        },
        closed,
      ),
    ),
  },
  closed,
);

/** A value set by the template's author when a version is created, such as a region or a secret. */
export const ManifestVariable = t.Object(
  {
    name: t.String({ pattern: "^[a-zA-Z_][a-zA-Z0-9_-]*$", maxLength: 64 }),
    description: t.Optional(text),
    type: t.Optional(t.Union([t.Literal("string"), t.Literal("number"), t.Literal("bool")])),
    default: t.Optional(t.Union([text, t.Number(), t.Boolean()])),
    sensitive: t.Optional(t.Boolean()),
  },
  closed,
);

export const ManifestPreset = t.Object(
  {
    name: text,
    description: t.Optional(text),
    icon: t.Optional(icon),
    default: t.Optional(t.Boolean()),
    parameters: t.Record(t.String(), t.Union([text, t.Number(), t.Boolean()])),
    /** Prebuilt workspaces to keep ready: how many, and after how many milliseconds an unclaimed one is replaced (0 or absent = never). */
    prebuilds: t.Optional(
      t.Union([
        t.Integer({ minimum: 0, maximum: 100 }),
        t.Object(
          {
            instances: t.Integer({ minimum: 0, maximum: 100 }),
            ttl_ms: t.Optional(t.Integer({ minimum: 0, maximum: MAX_DURATION_MS })),
            /** Numbers for other times: the matching entry is used, or the largest if several match. */
            schedule: t.Optional(
              t.Object(
                {
                  timezone: t.String({ minLength: 1, maxLength: 64 }),
                  entries: t.Array(
                    t.Object({ cron: text, instances: t.Integer({ minimum: 0, maximum: 100 }) }, closed),
                    { minItems: 1, maxItems: 32 },
                  ),
                },
                closed,
              ),
            ),
          },
          closed,
        ),
      ]),
    ),
  },
  closed,
);

export const ManifestScript = t.Object(
  {
    display_name: text,
    icon: t.Optional(icon),
    script: t.String({ maxLength: 262_144 }),
    run_on_start: t.Optional(t.Boolean()),
    run_on_stop: t.Optional(t.Boolean()),
    /** Users wait for it before they can sign in to the workspace. */
    start_blocks_login: t.Optional(t.Boolean()),
    cron: t.Optional(text),
    /** Seconds; 0 = no limit. */
    timeout: t.Optional(seconds),
    log_path: t.Optional(text),
  },
  closed,
);

export const ManifestApp = t.Object(
  {
    slug: t.String({ pattern: "^[a-z0-9]+(?:-[a-z0-9]+)*$", maxLength: 64 }),
    display_name: t.Optional(line),
    command: t.Optional(text),
    url: t.Optional(text),
    external: t.Optional(t.Boolean()),
    subdomain: t.Optional(t.Boolean()),
    hidden: t.Optional(t.Boolean()),
    group: t.Optional(text),
    icon: t.Optional(icon),
    tooltip: t.Optional(text),
    open_in: t.Optional(t.Union([t.Literal("slim-window"), t.Literal("tab")])),
    share: t.Optional(
      t.Union([t.Literal("owner"), t.Literal("authenticated"), t.Literal("organization"), t.Literal("public")]),
    ),
    healthcheck: t.Optional(
      t.Object({ url: text, interval: t.Integer({ minimum: 1 }), threshold: t.Integer({ minimum: 1 }) }, closed),
    ),
  },
  closed,
);

export const ManifestMetadata = t.Object(
  {
    key: name,
    display_name: t.Optional(line),
    script: t.String({ maxLength: 65_536 }),
    /** Seconds. */
    interval: t.Integer({ minimum: 1, maximum: 86_400 }),
    /** Seconds. */
    timeout: t.Optional(seconds),
  },
  closed,
);

/** A development container that the daemon starts with the workspace. Texts can contain placeholders. */
export const ManifestDevcontainer = t.Object(
  {
    name,
    /** The project's folder, absolute or relative to the agent's `directory`. */
    workspace_folder: t.String({ minLength: 1, maxLength: 4096 }),
    /** Relative to the project's folder; default: its `.devcontainer/devcontainer.json` or `.devcontainer.json`. */
    config_path: t.Optional(text),
  },
  closed,
);

export const ManifestAgent = t.Object(
  {
    name,
    os: t.Optional(t.Union([t.Literal("linux"), t.Literal("darwin"), t.Literal("windows")])),
    arch: t.Optional(t.Union([t.Literal("amd64"), t.Literal("arm64"), t.Literal("armv7")])),
    /** Where terminals and scripts start; default: the workspace's own folder. */
    directory: t.Optional(text),
    env: t.Optional(t.Record(t.String(), text)),
    display_apps: t.Optional(
      t.Array(
        t.Union([
          t.Literal("vscode"),
          t.Literal("vscode_insiders"),
          t.Literal("web_terminal"),
          t.Literal("port_forwarding_helper"),
          t.Literal("ssh_helper"),
        ]),
      ),
    ),
    /** Seconds until a daemon that never connected counts as timed out; 0 = never. Default 120. */
    connection_timeout: t.Optional(seconds),
    troubleshooting_url: t.Optional(text),
    motd_file: t.Optional(text),
    scripts: t.Optional(t.Array(ManifestScript, { maxItems: 64 })),
    apps: t.Optional(t.Array(ManifestApp, { maxItems: 64 })),
    metadata: t.Optional(t.Array(ManifestMetadata, { maxItems: 64 })),
    /** A placeholder for a parameter with the form type `repository`: it is cloned and set up. */
    repository: t.Optional(text),
    devcontainers: t.Optional(t.Array(ManifestDevcontainer, { maxItems: 16 })),
    /** The cloud machine it will run on: its daemon can sign in with that machine's identity instead of a token. */
    instance_id: t.Optional(t.String({ minLength: 1, maxLength: 256 })),
    /** Only for the provisioner `echo`, which starts nothing: the agent's token (a UUID), so that a test can act as the agent. */
    token: t.Optional(t.String({ format: "uuid" })),
  },
  closed,
);

/** A container for the provisioner `docker`. Texts can contain placeholders. */
export const ManifestContainer = t.Object(
  {
    /** For example `debian:13` or `registry.example.com/team/dev@sha256:...`. */
    image: t.String({ minLength: 1, maxLength: 512 }),
    /** When the image is pulled. Default `missing`. */
    pull: t.Optional(t.Union([t.Literal("missing"), t.Literal("always"), t.Literal("never")])),
    env: t.Optional(t.Record(t.String(), text)),
    labels: t.Optional(t.Record(t.String(), text)),
    /** Without an agent: replaces the image's command. With an agent: runs the daemon, such as [tini, --]. */
    command: t.Optional(t.Array(text, { maxItems: 128 })),
    /** Kept while the workspace is stopped, removed when it is deleted. */
    volumes: t.Optional(
      t.Array(
        t.Object(
          { name, path: t.String({ pattern: "^/.+", maxLength: 4096 }), read_only: t.Optional(t.Boolean()) },
          closed,
        ),
        { maxItems: 32 },
      ),
    ),
    /** A network of the engine; default: a separate one. */
    network: t.Optional(text),
    user: t.Optional(text),
    /** For example 512m or 4g; default: no limit. */
    memory: t.Optional(text),
    /** For example 0.5 or 4; default: no limit. */
    cpus: t.Optional(t.Union([t.Number(), text])),
    /** Seconds the container has to stop on its own before it is killed. Default 30. */
    stop_grace: t.Optional(t.Integer({ minimum: 0, maximum: 600 })),
  },
  closed,
);

export const ManifestResource = t.Object(
  {
    name,
    type: t.Optional(text),
    icon: t.Optional(icon),
    hide: t.Optional(t.Boolean()),
    daily_cost: t.Optional(t.Integer({ minimum: 0 })),
    metadata: t.Optional(
      t.Array(t.Object({ key: text, value: text, sensitive: t.Optional(t.Boolean()) }, closed), { maxItems: 64 }),
    ),
    agents: t.Optional(t.Array(ManifestAgent, { maxItems: 16 })),
    docker: t.Optional(ManifestContainer),
  },
  closed,
);

export const ManifestSchedule = t.Object(
  {
    /** Milliseconds until a started workspace is stopped; 0 = never. */
    default_ttl_ms: t.Optional(t.Integer({ minimum: 0, maximum: MAX_DURATION_MS })),
    activity_bump_ms: t.Optional(t.Integer({ minimum: 0, maximum: MAX_DURATION_MS })),
    time_til_dormant_ms: t.Optional(t.Integer({ minimum: 0, maximum: MAX_DURATION_MS })),
  },
  closed,
);

export const Manifest = t.Object(
  {
    /** The provisioner that creates it. `echo` starts nothing and is for tests. */
    provisioner: t.Union([t.Literal("local"), t.Literal("docker"), t.Literal("external"), t.Literal("echo")]),
    parameters: t.Optional(t.Array(ManifestParameter, { maxItems: 128 })),
    variables: t.Optional(t.Array(ManifestVariable, { maxItems: 128 })),
    presets: t.Optional(t.Array(ManifestPreset, { maxItems: 64 })),
    schedule: t.Optional(ManifestSchedule),
    /** The default coding agent of chats and tasks in its workspaces; the initial setting of a template created from this version. */
    default_coding_agent: t.Optional(codingAgentName()),
    /** Accounts that users of the template should link: IDs from the setting external_auth. */
    external_auth: t.Optional(
      t.Array(
        t.Object(
          {
            id: t.String({ pattern: "^[a-z0-9][a-z0-9_-]{0,63}$" }),
            /** The workspace is usable without it. Default false. */
            optional: t.Optional(t.Boolean()),
          },
          closed,
        ),
        { maxItems: 32 },
      ),
    ),
    /** Its workspaces are created for tasks of an AI agent; lists find them by `has-ai-task`. Default false. */
    ai_task: t.Optional(t.Boolean()),
    resources: t.Array(ManifestResource, { minItems: 1, maxItems: 64 }),
    /** Provisioner tags that a worker must have. */
    tags: t.Optional(t.Record(t.String(), text)),
    /** Settings of the provisioner `external`, for an external worker. */
    external: t.Optional(
      t.Object({ provisioner: t.Union([t.Literal("local"), t.Literal("docker"), t.Literal("echo")]) }, closed),
    ),
    /** Settings of the provisioner `echo`: how a build behaves. */
    echo: t.Optional(
      t.Object(
        {
          /** Lines it writes to the build log. */
          logs: t.Optional(t.Array(text, { maxItems: 10_000 })),
          /** Fails with this message. */
          error: t.Optional(text),
          /** Runs until it is canceled. */
          hang: t.Optional(t.Boolean()),
        },
        closed,
      ),
    ),
  },
  { ...closed, $id: "slipway-template", title: "Slipway template" },
);

type ManifestFields = Static<typeof Manifest>;
type OverriddenFields = "parameters" | "variables" | "resources" | "provisioner" | "external";

/** A manifest as stored: written in a template.yaml, or made from a Terraform template (manifest-terraform.ts). */
export type Manifest = Omit<ManifestFields, OverriddenFields> & {
  provisioner: ManifestFields["provisioner"] | "terraform";
  external?: { provisioner: NonNullable<ManifestFields["external"]>["provisioner"] | "terraform" } | undefined;
  parameters?: ManifestParameter[] | undefined;
  variables?: ManifestVariable[] | undefined;
  resources: ManifestResource[];
} & GeneratedManifest<ManifestResource>;
export type ManifestCondition = Static<typeof ManifestCondition>;
export type ManifestParameter = Static<typeof ManifestParameter> & GeneratedParameter;
export type ManifestVariable = Static<typeof ManifestVariable> & GeneratedVariable;
export type ManifestPreset = Static<typeof ManifestPreset>;
export type ManifestScript = Static<typeof ManifestScript>;
export type ManifestApp = Static<typeof ManifestApp> & GeneratedApp;
export type ManifestAgent = Omit<Static<typeof ManifestAgent>, "apps"> & { apps?: ManifestApp[] } & GeneratedAgent;
export type ManifestContainer = Static<typeof ManifestContainer>;
export type ManifestResource = Omit<Static<typeof ManifestResource>, "agents"> & {
  agents?: ManifestAgent[] | undefined;
} & GeneratedResource;
