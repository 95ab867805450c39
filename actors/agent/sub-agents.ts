// Nested agents as pure functions: what a parent may create, and the rows for it (facts/wire 1.5 and 1.6, rules SA-1 to SA-4). The parent's
// actor commits them. A child belongs to the same build and resource as its parent and is deleted with it.
import { conflict, invalidField } from "#base/errors.ts";
import { KEY_PLACEHOLDER } from "#base/links/external-link.ts";
import { type AgentRow, insertAgent } from "#db/agents/agents.ts";
import { insertAgentApp } from "#db/agents/apps.ts";
import { insertLogSource } from "#db/agents/log-sources.ts";
import { type AgentScriptRow, insertAgentScript } from "#db/agents/scripts.ts";
import type { Statement } from "#db/engine/sql.ts";
import { toIcon, toLine, toLink } from "#schema/text.ts";

/** A validated request for a nested agent. */
export type SubAgentInput = {
  name: string;
  directory: string;
  architecture: string;
  operating_system: string;
  display_apps: readonly string[];
  apps: readonly SubAgentApp[];
};

export type SubAgentApp = {
  slug: string;
  command: string;
  display_name: string;
  external: boolean;
  group: string;
  healthcheck: { url: string; interval: number; threshold: number };
  hidden: boolean;
  icon: string;
  open_in: string;
  order: number;
  sharing_level: string;
  subdomain: boolean;
  url: string;
};

/** An app that was not created, by its index in the input. */
export type AppRefusal = { index: number; field: string; error: string };

const MAX_SUB_AGENTS = 50;
const MAX_APPS = 100;
const MAX_TEXT = 4096;
/**
 * Maximum bytes of all texts of an agent's apps, because lists of workspaces include these texts for everyone who can see the workspace.
 */
const MAX_APPS_BYTES = 32 * 1024;
const NAME = /^[a-z0-9]+(?:-[a-z0-9]+)*$/i;
const SLUG = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;
const CONNECTION_TIMEOUT_SECONDS = 120;

/** Throws 400 for an invalid name, a long field or too many apps, and 409 for a taken name, too many agents or a nested parent. */
export const checkSubAgent = (input: SubAgentInput, siblings: readonly AgentRow[], parent: AgentRow): void => {
  if (parent.parent_id !== null) throw conflict("A sub-agent can't have sub-agents of its own.");
  if (input.name.length > 64 || !NAME.test(input.name))
    throw invalidField("name", "must be letters, digits and hyphens");
  for (const field of ["directory", "architecture", "operating_system"] as const) {
    if (input[field].length > MAX_TEXT) throw invalidField(field, "is too long");
  }
  if (input.apps.length > MAX_APPS) throw invalidField("apps", `An agent can have at most ${MAX_APPS} apps.`);
  if (input.apps.reduce((sum, app) => sum + measureTexts(app), 0) > MAX_APPS_BYTES) {
    throw invalidField("apps", `can be at most ${MAX_APPS_BYTES} bytes together`);
  }
  const name = input.name.toLowerCase();
  if (siblings.some((one) => one.name.toLowerCase() === name)) {
    throw conflict(`The workspace already has an agent named ${input.name}.`);
  }
  if (siblings.filter(({ parent_id }) => parent_id === parent.id).length >= MAX_SUB_AGENTS) {
    throw conflict(`An agent can have at most ${MAX_SUB_AGENTS} sub-agents.`);
  }
};

const measureTexts = (app: SubAgentApp): number =>
  [...Object.values(app), app.healthcheck.url].reduce<number>(
    (sum, value) => sum + (typeof value === "string" ? Buffer.byteLength(value) : 0),
    0,
  );

/** Builds the statement that inserts the child. */
export const buildSubAgentInsert = (
  { name, directory, architecture, operating_system, display_apps }: SubAgentInput,
  parent: AgentRow,
  created: { id: string; key: number; token_hash: string; now: number },
): Statement =>
  insertAgent({
    id: created.id,
    key: created.key,
    token_hash: created.token_hash,
    workspace_id: parent.workspace_id,
    build_id: parent.build_id,
    resource_id: parent.resource_id,
    parent_id: parent.id,
    api_key_scope: parent.api_key_scope,
    troubleshooting_url: parent.troubleshooting_url,
    connection_timeout_seconds: CONNECTION_TIMEOUT_SECONDS,
    name,
    directory,
    architecture,
    operating_system,
    display_apps: [...display_apps],
    // Lists show it after its parent.
    display_order: parent.display_order,
    created_at: created.now,
    updated_at: created.now,
  });

/** Builds the rows that make the child install its parent's dotfiles, because it has its own home. */
export const buildChildDotfiles = (
  { display_name, script, timeout_seconds }: AgentScriptRow,
  { agent_id, key, now, uuid }: { agent_id: string; key: number; now: number; uuid: () => string },
): Statement[] => {
  const log_source_id = uuid();
  const row = { id: uuid(), agent_id, log_source_id, display_name, script, timeout_seconds };
  return [
    insertLogSource({ key, agent_id, id: log_source_id, display_name, icon: "", created_at: now }),
    insertAgentScript({ ...row, run_on_start: true, is_dotfiles: true }),
  ];
};

/** Builds the rows of the child's apps. Invalid apps are skipped one by one; the agent is created without them. */
export const buildSubAgentApps = (
  apps: readonly SubAgentApp[],
  agent_id: string,
  newId: () => string,
): { writes: Statement[]; refused: AppRefusal[] } => {
  const refused: AppRefusal[] = [];
  const slugs = new Set<string>();
  const rows = apps.flatMap(({ order, healthcheck, ...app }, index) => {
    const problem = findAppProblem(app, slugs);
    if (problem) {
      refused.push({ index, ...problem });
      return [];
    }
    slugs.add(app.slug);
    return [
      {
        ...app,
        id: newId(),
        agent_id,
        display_order: order,
        display_name: toLine(app.display_name) || app.slug,
        url: toLink(app.url),
        icon: toIcon(app.icon),
        health: healthcheck.url === "" ? "disabled" : "initializing",
        healthcheck_url: healthcheck.url,
        healthcheck_interval: healthcheck.interval,
        healthcheck_threshold: healthcheck.threshold,
      },
    ];
  });
  return { writes: rows.length === 0 ? [] : [insertAgentApp(rows)], refused };
};

const findAppProblem = (
  app: Omit<SubAgentApp, "order" | "healthcheck">,
  taken: ReadonlySet<string>,
): Omit<AppRefusal, "index"> | undefined => {
  if (app.slug.length > 64 || !SLUG.test(app.slug)) {
    return { field: "slug", error: "must be lowercase letters, digits and hyphens" };
  }
  if (taken.has(app.slug)) return { field: "slug", error: "is taken by another app of this agent" };
  for (const field of ["command", "display_name", "group", "icon", "url"] as const) {
    if (app[field].length > MAX_TEXT) return { field, error: "is too long" };
  }
  // Apps declared inside a workspace never receive an API key of the person who opens them.
  if (app.url.includes(KEY_PLACEHOLDER)) {
    return { field: "url", error: `must not contain ${KEY_PLACEHOLDER}: only apps of a template get a key` };
  }
  return undefined;
};
