// Wire shapes of workspaces from a repository: the request, and the plan that the server derives from the repository's files. A plan is the
// value of a template parameter with the form type `repository`; nothing in it can access the server's machine, regardless of its author.

import { type Static, Type as t } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { tryParseJson } from "#base/json/read.ts";
import { hasCredentials, MAX_ADDRESS } from "#base/links/repository-address.ts";
import { iconUrl } from "../fields.ts";
import { oneOf } from "../one-of.ts";
import { namedObject } from "../shape-names.ts";
import { lineText } from "../text.ts";
import { DeployKey } from "../users/deploy-key.ts";

/** The form type of a parameter whose value is a link to a repository or a plan. */
export const REPOSITORY_FORM = "repository";

const MAX_SCRIPT = 16_384;
const MAX_STEPS = 64;

const path = (description: string) => t.String({ maxLength: 1_024, description });
const name = (description: string) => t.String({ maxLength: 256, description });
const variables = (description: string) =>
  t.Record(t.String({ pattern: "^[A-Za-z_][A-Za-z0-9_]*$", maxLength: 256 }), t.String({ maxLength: 8_192 }), {
    description,
  });

/** A request for a repository. */
export const RepositoryAsked = namedObject("RepositoryAsked", {
  url: lineText({
    minLength: 1,
    maxLength: MAX_ADDRESS,
    description:
      "A link to a repository, a branch, a commit, a pull request or a folder, as copied from GitHub, GitLab, Gitea or Bitbucket.",
  }),
  branch: t.Optional(
    lineText({ maxLength: 256, description: "A branch or tag. Takes precedence over the one in the link." }),
  ),
  commit: t.Optional(
    t.String({
      pattern: "^(?:[0-9a-f]{40}|[0-9a-f]{64})$",
      description: "A full commit ID. Takes precedence over the one in the link.",
    }),
  ),
  pull_request: t.Optional(
    t.Integer({ minimum: 1, maximum: 9_999_999_999, description: "The number of a pull or merge request." }),
  ),
  path: t.Optional(
    lineText({
      maxLength: 1_024,
      description: "The folder in the repository to open and to read the configuration from.",
    }),
  ),
  configuration: t.Optional(
    lineText({
      maxLength: 1_024,
      description: "The path of a devcontainer.json. Needed if the repository has several.",
    }),
  ),
  full_history: t.Optional(
    t.Boolean({ description: "Whether to clone the whole history. By default, only the newest commit is cloned." }),
  ),
});
export type RepositoryAsked = Static<typeof RepositoryAsked>;

/** The body of the route that reads a repository. */
export const ReadRepository = namedObject("ReadRepository", { repository: RepositoryAsked });

/** A command of a lifecycle step: a shell line, or a program with arguments. */
export const LifecycleCommand = namedObject("RepositoryCommand", {
  name: t.Optional(name("The name of the command in its group; absent if it has none.")),
  run: t.Union(
    [t.String({ maxLength: MAX_SCRIPT }), t.Array(t.String({ maxLength: MAX_SCRIPT }), { minItems: 1, maxItems: 256 })],
    { description: "A line for a shell, or a program with its arguments, which runs without a shell." },
  ),
});
export type LifecycleCommand = Static<typeof LifecycleCommand>;

/** Groups run one after the other; the commands of a group run in parallel. */
const lifecycle = (when: string) =>
  t.Array(t.Array(LifecycleCommand, { minItems: 1, maxItems: MAX_STEPS }), {
    maxItems: MAX_STEPS,
    description: `Commands that run ${when}: groups in order, the commands of a group in parallel.`,
  });
export type Lifecycle = Static<ReturnType<typeof lifecycle>>;

/** Lifecycle steps in execution order. */
export const LIFECYCLE_STEPS = ["on_create", "update_content", "post_create", "post_start"] as const;
export type LifecycleStep = (typeof LIFECYCLE_STEPS)[number];

export const RepositoryPort = namedObject("RepositoryPort", {
  port: t.Integer({ minimum: 1, maximum: 65_535 }),
  label: t.String({ maxLength: 128, description: "The name that is shown for the port; may be empty." }),
  protocol: oneOf(["http", "https"]),
});
export type RepositoryPort = Static<typeof RepositoryPort>;

const note = namedObject("RepositoryNote", {
  property: t.String({ maxLength: 256, description: "The name of the setting in the configuration file." }),
  reason: t.String({ maxLength: 1_024, description: "Why the setting is ignored, as a sentence." }),
});
export type RepositoryNote = Static<typeof note>;

/** The source of the configuration. */
export const SOURCES = ["devcontainer", "dockerfile", "gitpod", "devfile", "language"] as const;

export const RepositoryPlan = namedObject("RepositoryPlan", {
  url: t.String({ maxLength: MAX_ADDRESS, description: "The URL to clone." }),
  ssh_url: t.Optional(
    t.String({
      pattern: "^ssh://\\w[\\w.-]*@\\w[\\w.-]*(?::\\d{1,5})?/[\\w.~/-]+$",
      maxLength: MAX_ADDRESS,
      description: "The URL to clone with a deploy key.",
    }),
  ),
  name: t.String({
    pattern: "^[\\w.~][\\w.~-]*$",
    maxLength: 256,
    description: "The name of the folder that the repository is cloned into.",
  }),
  ref: t.String({ maxLength: 512, description: "The Git reference to clone; HEAD for the default branch." }),
  ref_kind: oneOf(
    ["default", "branch", "tag", "commit", "pull_request"],
    "What `ref` names. `default`: the default branch.",
  ),
  commit: t.String({
    pattern: "^[0-9a-f]{40,64}$",
    description: "The ID of the commit that the configuration was read from.",
  }),
  path: t.Optional(path("The folder in the repository that is opened; absent for the root.")),
  full_history: t.Optional(
    t.Boolean({ description: "Whether the whole history is cloned; default: only the newest commit." }),
  ),
  source: oneOf(
    SOURCES,
    "What the configuration was derived from. `language`: the repository has none, so it was derived from its programming language.",
  ),
  configuration: t.Optional(t.String({ maxLength: 1_024, description: "The path of the configuration file." })),
  choices: t.Array(t.String({ maxLength: 1_024 }), {
    maxItems: 64,
    description: "Other configuration files of the same kind in the repository.",
  }),
  title: t.Optional(name("The name that the configuration gives itself.")),
  image: t.Optional(
    t.String({ maxLength: 512, description: "The container image to use; absent if `build` describes one." }),
  ),
  build: t.Optional(
    t.Object(
      {
        dockerfile: path("The path of the Dockerfile in the repository."),
        context: path("The path of the folder that is the build context."),
        args: variables("The build arguments, by name."),
        target: t.Optional(name("The stage of the Dockerfile to build; default: the last one.")),
        tree: t.String({ pattern: "^[0-9a-f]{40,64}$", description: "The Git object ID of the build context." }),
        dockerfile_id: t.String({ pattern: "^[0-9a-f]{40,64}$", description: "The Git object ID of the Dockerfile." }),
      },
      { description: "The image to build from the repository; absent if `image` names one." },
    ),
  ),
  features: t.Array(
    t.Object({
      id: t.String({
        pattern: "^[\\w.~/:@-]+$",
        maxLength: 512,
        description:
          "The reference of the feature, such as `ghcr.io/devcontainers/features/node:1`, or its path in the repository.",
      }),
      options: t.Record(t.String({ pattern: "^[A-Za-z_][\\w-]*$", maxLength: 128 }), t.String({ maxLength: 4_096 }), {
        description: "The options of the feature, by name.",
      }),
      tree: t.Optional(
        t.String({
          pattern: "^[0-9a-f]{40,64}$",
          description: "For a feature in the repository: the Git object ID of its folder.",
        }),
      ),
    }),
    { maxItems: 32, description: "The devcontainer features to install into the image, in order." },
  ),
  user: t.Optional(
    t.String({
      pattern: "^[a-zA-Z0-9_][a-zA-Z0-9_.-]*(?::[a-zA-Z0-9_][a-zA-Z0-9_.-]*)?$",
      maxLength: 64,
      description: "The user in the container, optionally with a group; default: the image's user.",
    }),
  ),
  root: t.Optional(
    t.String({ pattern: "^/[^:\\u0000]+$", maxLength: 1_024, description: "The path of the clone in the container." }),
  ),
  folder: t.Optional(
    t.String({ maxLength: 1_024, description: "The path of the folder that is opened in the container." }),
  ),
  container_env: variables("Environment variables of the whole container."),
  remote_env: variables("Environment variables of terminals, editors and commands, but not of the container itself."),
  lifecycle: t.Object({
    on_create: lifecycle("once, after the repository was cloned"),
    update_content: lifecycle("after `on_create`"),
    post_create: lifecycle("after `update_content`"),
    post_start: lifecycle("at each start"),
  }),
  wait_for: oneOf(LIFECYCLE_STEPS, "The last step that must finish before the workspace is ready."),
  ports: t.Array(RepositoryPort, {
    maxItems: 32,
    description: "The ports that the configuration forwards. They become apps of the workspace.",
  }),
  volumes: t.Array(
    t.Object({
      name: t.String({ pattern: "^[a-zA-Z0-9][a-zA-Z0-9_-]{0,63}$" }),
      path: t.String({ pattern: "^/.+", maxLength: 1_024, description: "The path of the volume in the container." }),
    }),
    { maxItems: 16, description: "Volumes of the workspace that keep their files when the container is replaced." },
  ),
  wanted: t.Object(
    {
      cpus: t.Optional(t.Number({ minimum: 0, description: "The number of CPU cores." })),
      memory: t.Optional(t.String({ maxLength: 32, description: "The amount of memory, such as `8gb`." })),
    },
    { description: "The resources of the machine that the configuration asks for." },
  ),
  secrets: t.Array(
    t.Object({
      name: t.String({ maxLength: 256, description: "The name of the environment variable." }),
      description: t.String({ maxLength: 1_024, description: "What the secret is for; may be empty." }),
    }),
    { maxItems: 64, description: "The secrets that the configuration asks its users for." },
  ),
  extensions: t.Array(t.String({ maxLength: 256 }), {
    maxItems: 256,
    description: "The IDs of the VS Code extensions that the configuration lists.",
  }),
  hints: t.Array(t.String({ maxLength: 1_024 }), { maxItems: 16, description: "Advice for the user, as sentences." }),
  dropped: t.Array(note, {
    maxItems: 64,
    description: "The unsupported parts of the configuration, each with the reason.",
  }),
});
export type RepositoryPlan = Static<typeof RepositoryPlan>;

/** The preview shown before a workspace is created from a repository. */
export const RepositoryFound = namedObject("RepositoryFound", {
  plan: t.Optional({
    ...RepositoryPlan,
    description: "What the server would set up; absent if the repository can't be read.",
  }),
  problem: t.String({ description: "Why the repository can't be read; empty if it was read." }),
  provisioner: t.Optional(
    oneOf(["docker", "local"], "The provisioner that would build the workspace; absent if none on this server can."),
  ),
  notes: t.Array(note, { description: "The unsupported parts of the configuration, each with the reason." }),
  templates: t.Array(t.Object({ id: t.String({ format: "uuid" }), display_name: t.String(), icon: iconUrl }), {
    description:
      "The templates that can open the repository instead of the default one. They accept a repository and need no other value.",
  }),
  missing_secrets: t.Array(t.String(), {
    description: "The names of secrets that the configuration requires and the caller doesn't have.",
  }),
  deploy_key: t.Optional(Object.assign({}, DeployKey, { description: "The caller's deploy key for this repository." })),
  may_create_deploy_key: t.Boolean({
    description:
      "Whether the repository may be private, and the caller has neither a linked account at the host nor a deploy key.",
  }),
  account: t.Optional(
    t.Object(
      {
        id: t.String({ description: "The ID of the provider in paths, as in `ExternalAuthProvider`." }),
        display_name: t.String({ description: "The display name of the provider." }),
        linked: t.Boolean({ description: "Whether the caller has linked an account." }),
      },
      { description: "The account used to read repositories from this host." },
    ),
  ),
});
export type RepositoryFound = Static<typeof RepositoryFound>;

/** A repository that the caller has opened before. */
export const RecentRepository = namedObject("RecentRepository", {
  repository: RepositoryAsked,
  name: t.String({ description: "The last part of the repository's path." }),
  used_at: t.String({ format: "date-time", description: "When a workspace with the repository was last used." }),
  workspace: t.Optional(
    t.Object(
      { id: t.String({ format: "uuid" }), name: t.String() },
      { description: "The caller's most recently used workspace with the repository; absent if all were deleted." },
    ),
  ),
});
export type RecentRepository = Static<typeof RecentRepository>;

/** Parses a parameter value as a plan; undefined if it is not one. */
export const parsePlan = (value: string): RepositoryPlan | undefined => {
  if (!value.startsWith("{")) return undefined;
  const plan = tryParseJson(value);
  return Value.Check(RepositoryPlan, plan) && isWebAddress(plan.url) ? plan : undefined;
};

/**
 * Returns a parameter value for people who may not enter the workspace: only the link of a plan, because the plan may contain parts of a
 * private repository. A plan of another version without a link becomes empty. Values that are not plans are unchanged.
 */
export const hidePlan = (value: string): string => {
  if (!value.startsWith("{") || !value.includes('"ref_kind":')) return value;
  const plan = tryParseJson(value) as { readonly url?: unknown } | undefined;
  return typeof plan?.url === "string" && isWebAddress(plan.url) ? plan.url : "";
};

/**
 * Returns whether this is a web URL without a password. Other URLs cannot be cloned, and would fail a build without a readable error.
 * People see plans, so a plan must not contain a password.
 */
const isWebAddress = (url: string): boolean =>
  URL.canParse(url) && /^https?:$/.test(new URL(url).protocol) && !hasCredentials(url);
