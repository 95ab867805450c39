// From a name to what listens in a workspace, and who may open it (facts/platform 3.5, 8.4; rules AX-3 to AX-5). Anyone who may not learns
// nothing: what is not there and what one may not open are refused with the same words.

import { type AppName, formatLabel } from "#base/links/app-label.ts";
import { findAgentApp, findNamedWorkspace, listNamedAgents, type NamedWorkspace } from "#db/agents/app-places.ts";
import type { AgentAppRow } from "#db/agents/apps.ts";
import type { Store } from "#db/engine/store.ts";
import { listPortShares } from "#db/workspaces/port-shares.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { effectiveLevel, type ShareLevel } from "#schema/workspaces/port-share.ts";
import { isCovered, mayUseWorkspace } from "../access.ts";
import { portIn } from "./names.ts";

/** An app or a port that the caller may open. */
export type AppPlace = {
  readonly workspace_id: string;
  readonly owner_id: string;
  readonly agent_id: string;
  readonly build_id: string;
  /** The app's; undefined for a port. */
  readonly slug: string | undefined;
  readonly port: number;
  readonly tls: boolean;
  /** The path and query the app's own address has; a port has `/` and none. */
  readonly base: { readonly path: string; readonly query: string };
  /** The first label of its own host; empty when its names make none. */
  readonly label: string;
  /** Everyone may open it. */
  readonly isPublic: boolean;
  /** True for a port that has no app of its own. */
  readonly isPort: boolean;
};

/** Why there is nothing to show. `signed_out`: signing in may help. */
export type Refusal = "signed_out" | "not_found" | "dormant" | "stopped" | "starting" | "failed" | "no_address";

type Deps = { readonly store: Store };
type Target = { level: ShareLevel } & Pick<AppPlace, "port" | "tls" | "base" | "isPort">;

/** `asPreflight`: for a request that asks only what a page may send, which a browser never sends with a cookie. */
type Options = { readonly asPreflight?: boolean };

/** Finds it for this caller (undefined: nobody is signed in). */
export const findApp = async (
  { store }: Deps,
  name: AppName,
  caller: UserCaller | undefined,
  { asPreflight = false }: Options = {},
): Promise<AppPlace | Refusal> => {
  const refused: Refusal = caller ? "not_found" : "signed_out";
  const username = name.user === "me" ? caller?.username : name.user;
  const workspace = username && (await store.get(findNamedWorkspace({ username, name: name.workspace })));
  if (!workspace) return refused;
  const isUser = caller !== undefined && mayUseWorkspace(caller, workspace);
  const state = toState(workspace);
  // How it is with a workspace is told to those who may use it; others cannot know whether they might.
  if (state !== "running") return isUser ? state : refused;
  const agents = await store.all(listNamedAgents({ build_id: workspace.build_id }));
  const agent = name.agent
    ? agents.find((one) => one.name.toLowerCase() === name.agent)
    : onlyOne(agents.filter(({ parent_id }) => parent_id === null));
  if (!agent) return refused;
  const app = await store.get(findAgentApp({ agent_id: agent.id, slug: name.app }));
  const target = app ? toTarget(app) : await findPort(store, workspace.id, agent.name, name.app);
  if (!target) return isUser && app ? "no_address" : refused;
  const level = effectiveLevel(target.level, workspace.max_share_level as ShareLevel);
  if (!asPreflight && !mayOpen(level, caller, workspace)) return refused;
  const { level: _, ...rest } = target;
  const label = formatLabel({ app: name.app, agent: agent.name, workspace: workspace.name, user: username });
  const { id: workspace_id, owner_id, build_id } = workspace;
  const where = { workspace_id, owner_id, build_id, agent_id: agent.id };
  return { ...where, slug: app?.slug, label, isPublic: level === "public", ...rest };
};

const onlyOne = <T>(all: readonly T[]): T | undefined => (all.length === 1 ? all[0] : undefined);

const toState = (workspace: NamedWorkspace): Refusal | "running" => {
  if (workspace.dormant_at !== null) return "dormant";
  if (workspace.transition !== "start") return "stopped";
  if (workspace.completed_at === null) return "starting";
  return workspace.error === "" ? "running" : "failed";
};

/** `owner` are those who may use the workspace; the site's own level is wider than an organization's (SHARE_LEVELS). */
export const mayOpen = (
  level: ShareLevel,
  caller: UserCaller | undefined,
  workspace: Pick<NamedWorkspace, "id" | "owner_id" | "organization_id" | "user_acl" | "group_acl">,
): boolean => {
  if (level === "public") return true;
  if (!caller || !isCovered(caller, workspace)) return false;
  if (level === "authenticated" || mayUseWorkspace(caller, workspace)) return true;
  return level === "organization" && workspace.organization_id in caller.organizations;
};

const LOOPBACK = /^(localhost|127(?:\.\d{1,3}){3}|\[::1\]|0\.0\.0\.0)$/;

/** Where an app listens; undefined for one that is a command, opened on its own, or elsewhere than in the workspace. */
const toTarget = (app: AgentAppRow): Target | undefined => {
  const url = URL.canParse(app.url) ? new URL(app.url) : undefined;
  if (app.external || !url || !/^https?:$/.test(url.protocol) || !LOOPBACK.test(url.hostname)) return undefined;
  const tls = url.protocol === "https:";
  const port = Number(url.port) || (tls ? 443 : 80);
  const base = { path: url.pathname, query: url.search };
  return port < 9 ? undefined : { port, tls, base, isPort: false, level: app.sharing_level as ShareLevel };
};

/** A port of the workspace; only its users reach one that is not shared. */
const findPort = async (
  store: Store,
  workspace_id: string,
  agent: string,
  app: string,
): Promise<Target | undefined> => {
  const port = portIn(app);
  if (!port) return undefined;
  const shares = await store.all(listPortShares({ workspace_id }));
  const share = shares.find((one) => one.agent_name === agent && one.port === port.port);
  const tls = port.tls || share?.protocol === "https";
  return { port: port.port, tls, base: { path: "/", query: "" }, isPort: true, level: share?.share_level ?? "owner" };
};
