// Wire shapes of workspaces from a repository: the request, and the plan that the server derives from the repository's files. A plan is the
// value of a template parameter with the form type `repository`; nothing in it can access the server's machine, regardless of its author.

import { type Static, Type as t } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { tryParseJson } from "#base/json/read.ts";
import { hasCredentials, MAX_ADDRESS } from "#base/links/repository-address.ts";
import { oneOf } from "../one-of.ts";
import { namedObject } from "../shape-names.ts";
import { lineText } from "../text.ts";
import { DeployKey } from "../users/deploy-key.ts";

/** The form type of a parameter whose value is a link to a repository or a plan. */
export const REPOSITORY_FORM = "repository";

const MAX_SCRIPT = 16_384;
const MAX_STEPS = 64;

const path = t.String({ maxLength: 1_024 });
const name = t.String({ maxLength: 256 });
const variables = t.Record(
  t.String({ pattern: "^[A-Za-z_][A-Za-z0-9_]*$", maxLength: 256 }),
  t.String({ maxLength: 8_192 }),
);

/** A request for a repository. */
export const RepositoryAsked = namedObject("RepositoryAsked", {
  url: lineText({
    minLength: 1,
    maxLength: MAX_ADDRESS,
    description:
      "A link to a repository, as copied from GitHub, GitLab, Gitea or Bitbucket: also of a branch, a commit, a pull request or a folder.",
  }),
  branch: t.Optional(lineText({ maxLength: 256, description: "A branch or tag, instead of the one in the link." })),
  commit: t.Optional(
    t.String({
      pattern: "^(?:[0-9a-f]{40}|[0-9a-f]{64})$",
      description: "A full commit id, instead of the one in the link.",
    }),
  ),
  pull_request: t.Optional(
    t.Integer({ minimum: 1, maximum: 9_999_999_999, description: "The number of a pull or merge request." }),
  ),
  path: t.Optional(lineText({ maxLength: 1_024, description: "A folder in the repository to open and to read." })),
  configuration: t.Optional(
    lineText({ maxLength: 1_024, description: "The path of a devcontainer.json, if the repository has several." }),
  ),
  full_history: t.Optional(t.Boolean({ description: "Clone every commit; otherwise only the newest one (default)." })),
});
export type RepositoryAsked = Static<typeof RepositoryAsked>;

/** The body of the route that reads a repository. */
export const ReadRepository = namedObject("ReadRepository", { repository: RepositoryAsked });

/** A command of a lifecycle step: a shell line, or a program with arguments. */
export const LifecycleCommand = namedObject("RepositoryCommand", {
  name: t.Optional(name),
  run: t.Union([
    t.String({ maxLength: MAX_SCRIPT }),
    t.Array(t.String({ maxLength: MAX_SCRIPT }), { minItems: 1, maxItems: 256 }),
  ]),
});
export type LifecycleCommand = Static<typeof LifecycleCommand>;

/** Groups run one after the other; the commands of a group run in parallel. */
const lifecycle = t.Array(t.Array(LifecycleCommand, { minItems: 1, maxItems: MAX_STEPS }), { maxItems: MAX_STEPS });
export type Lifecycle = Static<typeof lifecycle>;

/** Lifecycle steps in execution order. */
export const LIFECYCLE_STEPS = ["on_create", "update_content", "post_create", "post_start"] as const;
export type LifecycleStep = (typeof LIFECYCLE_STEPS)[number];

export const RepositoryPort = namedObject("RepositoryPort", {
  port: t.Integer({ minimum: 1, maximum: 65_535 }),
  label: t.String({ maxLength: 128 }),
  protocol: oneOf(["http", "https"]),
});
export type RepositoryPort = Static<typeof RepositoryPort>;

const note = namedObject("RepositoryNote", {
  property: t.String({ maxLength: 256 }),
  reason: t.String({ maxLength: 1_024 }),
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
      description: "The URL to clone with a deploy key instead.",
    }),
  ),
  name: t.String({ pattern: "^[\\w.~][\\w.~-]*$", maxLength: 256, description: "The name of the clone's folder." }),
  ref: t.String({ maxLength: 512, description: "The reference that is cloned; HEAD for the default branch." }),
  ref_kind: oneOf(["default", "branch", "tag", "commit", "pull_request"]),
  commit: t.String({ pattern: "^[0-9a-f]{40,64}$", description: "The commit whose configuration this is." }),
  path: t.Optional(path),
  full_history: t.Optional(t.Boolean()),
  source: oneOf(SOURCES),
  configuration: t.Optional(t.String({ maxLength: 1_024, description: "The file that was read." })),
  choices: t.Array(path, { maxItems: 64, description: "Files of the same kind that could be read instead." }),
  title: t.Optional(name),
  image: t.Optional(t.String({ maxLength: 512 })),
  build: t.Optional(
    t.Object({
      dockerfile: path,
      context: path,
      args: variables,
      target: t.Optional(name),
      tree: t.String({ pattern: "^[0-9a-f]{40,64}$", description: "Git object ID of the context's files." }),
      dockerfile_id: t.String({ pattern: "^[0-9a-f]{40,64}$", description: "Git object ID of the Dockerfile." }),
    }),
  ),
  features: t.Array(
    t.Object({
      id: t.String({ pattern: "^[\\w.~/:@-]+$", maxLength: 512 }),
      options: t.Record(t.String({ pattern: "^[A-Za-z_][\\w-]*$", maxLength: 128 }), t.String({ maxLength: 4_096 })),
      tree: t.Optional(
        t.String({ pattern: "^[0-9a-f]{40,64}$", description: "Of one in the repository: Git's id of its files." }),
      ),
    }),
    { maxItems: 32 },
  ),
  user: t.Optional(
    t.String({ pattern: "^[a-zA-Z0-9_][a-zA-Z0-9_.-]*(?::[a-zA-Z0-9_][a-zA-Z0-9_.-]*)?$", maxLength: 64 }),
  ),
  root: t.Optional(
    t.String({ pattern: "^/[^:\\u0000]+$", maxLength: 1_024, description: "Where the clone is in a container." }),
  ),
  folder: t.Optional(t.String({ maxLength: 1_024, description: "The folder that is opened in a container." })),
  container_env: variables,
  remote_env: variables,
  lifecycle: t.Object({
    on_create: lifecycle,
    update_content: lifecycle,
    post_create: lifecycle,
    post_start: lifecycle,
  }),
  wait_for: oneOf(LIFECYCLE_STEPS, "The last step that a start waits for."),
  ports: t.Array(RepositoryPort, { maxItems: 32 }),
  volumes: t.Array(
    t.Object({
      name: t.String({ pattern: "^[a-zA-Z0-9][a-zA-Z0-9_-]{0,63}$" }),
      path: t.String({ pattern: "^/.+", maxLength: 1_024 }),
    }),
    { maxItems: 16 },
  ),
  wanted: t.Object({ cpus: t.Optional(t.Number({ minimum: 0 })), memory: t.Optional(t.String({ maxLength: 32 })) }),
  secrets: t.Array(t.Object({ name, description: t.String({ maxLength: 1_024 }) }), { maxItems: 64 }),
  extensions: t.Array(name, { maxItems: 256 }),
  hints: t.Array(t.String({ maxLength: 1_024 }), { maxItems: 16 }),
  dropped: t.Array(note, { maxItems: 64, description: "Unsupported parts of the configuration, and why." }),
});
export type RepositoryPlan = Static<typeof RepositoryPlan>;

/** The preview shown before a workspace is created from a repository. */
export const RepositoryFound = namedObject("RepositoryFound", {
  plan: t.Optional(RepositoryPlan),
  problem: t.String({ description: "Why the repository cannot be read; empty when it was." }),
  provisioner: t.Optional(oneOf(["docker", "local"], "How it would be opened; absent when nothing here can.")),
  notes: t.Array(note, { description: "Unsupported parts of the configuration, and why." }),
  templates: t.Array(t.Object({ id: t.String({ format: "uuid" }), display_name: t.String(), icon: t.String() }), {
    description:
      "Templates that the repository can be opened with instead of the default one: they take a repository and need no other value.",
  }),
  missing_secrets: t.Array(t.String(), {
    description: "Secrets that the configuration requires and the caller does not have.",
  }),
  deploy_key: t.Optional(Object.assign({}, DeployKey, { description: "The caller's deploy key for this repository." })),
  may_create_deploy_key: t.Boolean({
    description:
      "Whether the problem may be that the repository is private, and the caller has neither an account at the host nor a deploy key.",
  }),
  account: t.Optional(
    t.Object(
      { id: t.String(), display_name: t.String(), linked: t.Boolean() },
      { description: "The account that reads repositories at this host." },
    ),
  ),
});
export type RepositoryFound = Static<typeof RepositoryFound>;

/** A repository that the caller has opened before. */
export const RecentRepository = namedObject("RecentRepository", {
  repository: RepositoryAsked,
  name: t.String({ description: "The last part of its path." }),
  used_at: t.String({ format: "date-time", description: "When a workspace of it was last used." }),
  workspace: t.Optional(
    t.Object(
      { id: t.String({ format: "uuid" }), name: t.String() },
      { description: "The caller's most recently used workspace with it; absent if all were deleted." },
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
 * Only web URLs are cloned; an unparsable URL would fail a build without a readable error. Plans are shown to people, so none may contain a
 * password.
 */
const isWebAddress = (url: string): boolean =>
  URL.canParse(url) && /^https?:$/.test(new URL(url).protocol) && !hasCredentials(url);
