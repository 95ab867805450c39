// Streams a user's workspaces and agents to desktop clients: first all of them, then changes (facts/wire 2). A slow client gets fewer,
// larger updates, so that nothing accumulates. A key for one workspace gets only that one. [TL-16]
import { uuidToBytes } from "#base/ids.ts";
import { listAgentsOfBuild } from "#db/agents/agents.ts";
import { findOwnedWorkspace, listOwnedWorkspaces } from "#db/agents/tailnet-views.ts";
import { isCoveredByKey } from "#domain/access.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { BUILD_STATUSES } from "#schema/workspaces/build.ts";
import { type TailnetAgentInit, type TailnetWorkspaceInit, Wakeup, Workspace_Status } from "#src/wire/index.ts";
import type { ApiContext } from "../context.ts";

type Update = {
  upsertedWorkspaces: TailnetWorkspaceInit[];
  upsertedAgents: TailnetAgentInit[];
  deletedWorkspaces: TailnetWorkspaceInit[];
  deletedAgents: TailnetAgentInit[];
};
/** What the client has received about a workspace. */
type SentWorkspace = { name: string; status: Workspace_Status; agents: Map<string, string> };

const PAGE_SIZE = 500;

export async function* streamWorkspaceUpdates(
  ctx: Pick<ApiContext, "store" | "tailnet">,
  { owner_id, caller }: { readonly owner_id: string; readonly caller: UserCaller },
  signal: AbortSignal,
): AsyncGenerator<Update, void, undefined> {
  const sent = new Map<string, SentWorkspace>();
  let changedIds = new Set<string>();
  const wakeup = new Wakeup();
  // Subscribes before reading, so that no change is missed in between.
  const stop = ctx.tailnet.changes.listen(owner_id, (id) => {
    if (!isCoveredByKey(caller, { id })) return;
    changedIds.add(id);
    wakeup.wake();
  });
  signal.addEventListener("abort", () => wakeup.wake());
  try {
    const ids = (await listAll(ctx, owner_id)).filter((id) => isCoveredByKey(caller, { id }));
    yield await buildUpdate(ctx, owner_id, sent, ids);
    while (!signal.aborted) {
      if (changedIds.size === 0) {
        await wakeup.wait();
        continue;
      }
      const ids = changedIds;
      changedIds = new Set();
      const update = await buildUpdate(ctx, owner_id, sent, ids);
      if (Object.values(update).some((list) => list.length > 0)) yield update;
    }
  } finally {
    stop();
  }
}

const listAll = async ({ store }: Pick<ApiContext, "store">, owner_id: string): Promise<string[]> => {
  const ids: string[] = [];
  for (;;) {
    const page = await store.scan(listOwnedWorkspaces({ owner_id, after: ids.at(-1) ?? "", limit: PAGE_SIZE }));
    ids.push(...page.map(({ id }) => id));
    if (page.length < PAGE_SIZE) return ids;
  }
};

/** Reads these workspaces again and returns what the client does not have yet. */
const buildUpdate = async (
  { store }: Pick<ApiContext, "store">,
  owner_id: string,
  sent: Map<string, SentWorkspace>,
  ids: Iterable<string>,
): Promise<Update> => {
  const update: Update = { upsertedWorkspaces: [], upsertedAgents: [], deletedWorkspaces: [], deletedAgents: [] };
  for (const id of ids) {
    const previous = sent.get(id);
    const workspace = await store.get(findOwnedWorkspace({ id }));
    const isOwned = workspace !== undefined && !workspace.deleted && workspace.owner_id === owner_id;
    const agents = isOwned ? await store.all(listAgentsOfBuild({ build_id: workspace.latest_build_id })) : [];
    const agentNames = new Map(agents.map((agent) => [agent.id, agent.name]));
    const workspaceId = uuidToBytes(id);
    for (const [agent, name] of previous?.agents ?? []) {
      if (!agentNames.has(agent)) update.deletedAgents.push({ id: uuidToBytes(agent), name, workspaceId });
    }
    if (!isOwned) {
      if (previous)
        update.deletedWorkspaces.push({ id: workspaceId, name: previous.name, status: Workspace_Status.DELETED });
      sent.delete(id);
      continue;
    }
    const status = toStatus(workspace.status);
    if (previous?.name !== workspace.name || previous.status !== status) {
      update.upsertedWorkspaces.push({ id: workspaceId, name: workspace.name, status });
    }
    for (const [agent, name] of agentNames) {
      if (previous?.agents.get(agent) !== name)
        update.upsertedAgents.push({ id: uuidToBytes(agent), name, workspaceId });
    }
    sent.set(id, { name: workspace.name, status, agents: agentNames });
  }
  return update;
};

const STATUSES: Readonly<Record<(typeof BUILD_STATUSES)[number], Workspace_Status>> = {
  pending: Workspace_Status.PENDING,
  starting: Workspace_Status.STARTING,
  running: Workspace_Status.RUNNING,
  stopping: Workspace_Status.STOPPING,
  stopped: Workspace_Status.STOPPED,
  failed: Workspace_Status.FAILED,
  canceling: Workspace_Status.CANCELING,
  canceled: Workspace_Status.CANCELED,
  deleting: Workspace_Status.DELETING,
  deleted: Workspace_Status.DELETED,
};

const toStatus = (status: string): Workspace_Status => {
  const buildStatus = BUILD_STATUSES.find((one) => one === status);
  return buildStatus ? STATUSES[buildStatus] : Workspace_Status.UNKNOWN;
};
