// Resolves the name of an app or port and checks who may open it (facts/platform 3.5, 8.4; rules AX-3 to AX-5). Unauthorized callers learn
// nothing: missing and forbidden apps get the same message.

import { type AppName, formatLabel } from "#base/links/app-label.ts";
import type { AgentAppRow } from "#db/agents/apps.ts";
import { findAgentApp, findNamedWorkspace, listNamedAgents, type NamedWorkspace } from "#db/agents/named-apps.ts";
import type { Store } from "#db/engine/store.ts";
import { listPortShares } from "#db/workspaces/port-shares.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { getEffectiveLevel, type ShareLevel } from "#schema/workspaces/port-share.ts";
import { canUseWorkspace, isCoveredByKey } from "../access.ts";
import { parsePort } from "./names.ts";

/** An app or port that the caller can open. */
export type ResolvedApp = {
  readonly workspace_id: string;
  readonly owner_id: string;
  readonly agent_id: string;
  readonly build_id: string;
  /** The app's slug; undefined for a port. */
  readonly slug: string | undefined;
  readonly port: number;
  readonly tls: boolean;
  /** Path and query of the app's own URL; for a port, `/` and none. */
  readonly base: { readonly path: string; readonly query: string };
  /** The first label of its own host; empty if its names form no valid label. */
  readonly label: string;
  /** True if everyone may open it. */
  readonly isPublic: boolean;
  /** True for a port without an app. */
  readonly isPort: boolean;
};

/** Why there is nothing to show. `signed_out`: signing in may help. */
export type Refusal = "signed_out" | "not_found" | "dormant" | "stopped" | "starting" | "failed" | "no_address";

type Deps = { readonly store: Store };
type Target = { level: ShareLevel } & Pick<ResolvedApp, "port" | "tls" | "base" | "isPort">;

/** `asPreflight`: for a CORS preflight, which browsers always send without cookies. */
type Options = { readonly asPreflight?: boolean };

/** Finds the app for this caller; undefined means anonymous. */
export const findApp = async (
  { store }: Deps,
  name: AppName,
  caller: UserCaller | undefined,
  { asPreflight = false }: Options = {},
): Promise<ResolvedApp | Refusal> => {
  const refused: Refusal = caller ? "not_found" : "signed_out";
  const username = name.user === "me" ? caller?.username : name.user;
  const workspace = username && (await store.get(findNamedWorkspace({ username, name: name.workspace })));
  if (!workspace) return refused;
  const isUser = caller !== undefined && canUseWorkspace(caller, workspace);
  const state = toState(workspace);
  // Only users of the workspace learn its state, because others may not be allowed to open the app at all.
  if (state !== "running") return isUser ? state : refused;
  const agents = await store.all(listNamedAgents({ build_id: workspace.build_id }));
  const agent = name.agent
    ? agents.find((one) => one.name.toLowerCase() === name.agent)
    : getOnly(agents.filter(({ parent_id }) => parent_id === null));
  if (!agent) return refused;
  const app = await store.get(findAgentApp({ agent_id: agent.id, slug: name.app }));
  const target = app ? toTarget(app) : await findPort(store, workspace.id, agent.name, name.app);
  if (!target) return isUser && app ? "no_address" : refused;
  const level = getEffectiveLevel(target.level, workspace.max_share_level as ShareLevel);
  if (!asPreflight && !canOpen(level, caller, workspace)) return refused;
  const { level: _, ...rest } = target;
  const label = formatLabel({ app: name.app, agent: agent.name, workspace: workspace.name, user: username });
  const { id: workspace_id, owner_id, build_id } = workspace;
  const location = { workspace_id, owner_id, build_id, agent_id: agent.id };
  return { ...location, slug: app?.slug, label, isPublic: level === "public", ...rest };
};

const getOnly = <T>(all: readonly T[]): T | undefined => (all.length === 1 ? all[0] : undefined);

const toState = (workspace: NamedWorkspace): Refusal | "running" => {
  if (workspace.dormant_at !== null) return "dormant";
  if (workspace.transition !== "start") return "stopped";
  if (workspace.completed_at === null) return "starting";
  return workspace.error === "" ? "running" : "failed";
};

/** The level `owner` allows all users of the workspace; `authenticated` allows more people than `organization` (SHARE_LEVELS). */
export const canOpen = (
  level: ShareLevel,
  caller: UserCaller | undefined,
  workspace: Pick<NamedWorkspace, "id" | "owner_id" | "organization_id" | "user_acl" | "group_acl">,
): boolean => {
  if (level === "public") return true;
  if (!caller || !isCoveredByKey(caller, workspace)) return false;
  if (level === "authenticated" || canUseWorkspace(caller, workspace)) return true;
  return level === "organization" && workspace.organization_id in caller.organizations;
};

const LOOPBACK = /^(localhost|127(?:\.\d{1,3}){3}|\[::1\]|0\.0\.0\.0)$/;

/** Returns where an app listens; undefined for a command, an external app, or one that listens outside the workspace. */
const toTarget = (app: AgentAppRow): Target | undefined => {
  const url = URL.canParse(app.url) ? new URL(app.url) : undefined;
  if (app.external || !url || !/^https?:$/.test(url.protocol) || !LOOPBACK.test(url.hostname)) return undefined;
  const tls = url.protocol === "https:";
  const port = Number(url.port) || (tls ? 443 : 80);
  const base = { path: url.pathname, query: url.search };
  return port < 9 ? undefined : { port, tls, base, isPort: false, level: app.sharing_level as ShareLevel };
};

/** Finds a port; only users of the workspace reach one that is not shared. */
const findPort = async (
  store: Store,
  workspace_id: string,
  agent: string,
  app: string,
): Promise<Target | undefined> => {
  const port = parsePort(app);
  if (!port) return undefined;
  const shares = await store.all(listPortShares({ workspace_id }));
  const share = shares.find((one) => one.agent_name === agent && one.port === port.port);
  const tls = port.tls || share?.protocol === "https";
  return { port: port.port, tls, base: { path: "/", query: "" }, isPort: true, level: share?.share_level ?? "owner" };
};
