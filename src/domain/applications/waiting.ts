// The progress page of an app whose workspace is not running or has just started: its state, whether the visitor can start it, and its
// progress (rules WO-4 to WO-7).
import { agentStatus } from "#actors/agent/status.ts";
import type { AppName } from "#base/links/app-label.ts";
import { findAgent } from "#db/agents/agents.ts";
import { findNamedWorkspace, listKnownApps, type NamedWorkspace } from "#db/agents/named-apps.ts";
import { findTemplateEvenDeleted } from "#db/templates/templates.ts";
import { findBuild } from "#db/workspaces/builds.ts";
import { findJob, findLastJobLog } from "#db/workspaces/jobs.ts";
import { listPortShares } from "#db/workspaces/port-shares.ts";
import { findWorkspaceAccessRow } from "#db/workspaces/workspaces.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { getEffectiveLevel, type ShareLevel } from "#schema/workspaces/port-share.ts";
import { canUseWorkspace } from "../access.ts";
import { findWakeState, type WakeStatus } from "../builds/wake.ts";
import type { DomainContext } from "../context.ts";
import { canOpen } from "./find.ts";
import { parsePort } from "./names.ts";

type Deps = Pick<DomainContext, "store" | "clock">;

/** The workspace of the requested app, and the visitor's access to it. */
export type AwaitedWorkspace = WakeStatus & {
  readonly workspace_id: string;
  readonly name: string;
  /** True if the visitor can use the workspace and may see its details; others are visitors of one app. */
  readonly isUser: boolean;
};

/** Timeout for an app to respond after the startup scripts have ended. */
const GRACE_MS = 30_000;
/** Startup scripts that run longer are not waited for. */
const MAX_SCRIPTS_MS = 30 * 60_000;

/** Returns undefined for callers who can neither use the workspace nor open an app of a workspace that visitors can start. */
export const findAwaited = async (
  deps: Deps,
  name: AppName,
  caller: UserCaller | undefined,
): Promise<AwaitedWorkspace | undefined> => {
  const { store } = deps;
  const username = name.user === "me" ? caller?.username : name.user;
  const workspace = username && (await store.get(findNamedWorkspace({ username, name: name.workspace })));
  if (!workspace) return undefined;
  const isUser = caller !== undefined && canUseWorkspace(caller, workspace);
  if (!isUser && !(await isVisitor(deps, workspace, name, caller))) return undefined;
  const access = await store.get(findWorkspaceAccessRow({ id: workspace.id }));
  if (!access) return undefined;
  return { workspace_id: workspace.id, name: workspace.name, isUser, ...(await findWakeState(deps, access)) };
};

/** True if the template lets visitors start the workspace, and this visitor could open the app when it last ran. */
const isVisitor = async (
  { store }: Deps,
  workspace: NamedWorkspace,
  { app, agent }: AppName,
  caller: UserCaller | undefined,
): Promise<boolean> => {
  const { id, max_share_level } = workspace;
  const template = await store.get(findTemplateEvenDeleted({ id: workspace.template_id }));
  if (template?.wake_on_connect !== "public") return false;
  const isNamed = (name: string): boolean => agent === undefined || name.toLowerCase() === agent;
  const knownApp = (await store.all(listKnownApps({ workspace_id: id, slug: app }))).find((one) => isNamed(one.agent));
  const port = knownApp ? undefined : parsePort(app)?.port;
  const shares = port === undefined ? [] : await store.all(listPortShares({ workspace_id: id }));
  const share = shares.find((one) => isNamed(one.agent_name) && one.port === port);
  const level = (knownApp?.level ?? share?.share_level) as ShareLevel | undefined;
  return level !== undefined && canOpen(getEffectiveLevel(level, max_share_level as ShareLevel), caller, workspace);
};

/** The progress of a build: the newest log line while it is running, and why it failed. */
export const findProgress = async (
  { store }: Deps,
  build_id: string,
): Promise<{ readonly isQueued: boolean; readonly line: string; readonly error: string }> => {
  const build = await store.get(findBuild({ id: build_id }));
  const job = build && (await store.get(findJob({ id: build.job_id })));
  const line = job && (await store.get(findLastJobLog({ job: job.key })));
  return { isQueued: job?.started_at === null, line: line?.output ?? "", error: job?.error ?? "" };
};

/** The progress of an agent: `connecting`, `scripts` (startup scripts are running), `opening` (the app may still start), `open`. */
export type AgentStage = "connecting" | "scripts" | "opening" | "open";

export const findAgentStage = async ({ store, clock }: Deps, agent_id: string): Promise<AgentStage> => {
  const agent = await store.get(findAgent({ id: agent_id }));
  if (!agent) return "open";
  const now = clock.now();
  const status = agentStatus(agent, now);
  if (status === "connecting") return "connecting";
  if (status !== "connected") return "open";
  const since = agent.ready_at ?? agent.first_connected_at ?? now;
  const isRunningScripts = agent.lifecycle_state === "created" || agent.lifecycle_state === "starting";
  if (isRunningScripts) return now - since < MAX_SCRIPTS_MS ? "scripts" : "open";
  return now - since < GRACE_MS ? "opening" : "open";
};
