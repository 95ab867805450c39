// Streams a user's workspaces and agents to desktop clients: first all of them, then changes (facts/wire 2). A slow client gets fewer,
// larger updates; nothing accumulates. [TL-16]
import { uuidToBytes } from "#base/ids.ts";
import { listAgentsOfBuild } from "#db/agents/agents.ts";
import { findOwnedWorkspace, listOwnedWorkspaces } from "#db/agents/tailnet-views.ts";
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

const PAGE = 500;

export async function* streamWorkspaceUpdates(
  ctx: Pick<ApiContext, "store" | "tailnet">,
  owner_id: string,
  signal: AbortSignal,
): AsyncGenerator<Update, void, undefined> {
  const shown = new Map<string, SentWorkspace>();
  let changed = new Set<string>();
  const bell = new Wakeup();
  // Subscribes before reading, so that no change is missed in between.
  const stop = ctx.tailnet.changes.listen(owner_id, (id) => {
    changed.add(id);
    bell.wake();
  });
  signal.addEventListener("abort", () => bell.wake());
  try {
    yield await step(ctx, owner_id, shown, await listAll(ctx, owner_id));
    while (!signal.aborted) {
      if (changed.size === 0) {
        await bell.wait();
        continue;
      }
      const ids = changed;
      changed = new Set();
      const update = await step(ctx, owner_id, shown, ids);
      if (Object.values(update).some((list) => list.length > 0)) yield update;
    }
  } finally {
    stop();
  }
}

const listAll = async ({ store }: Pick<ApiContext, "store">, owner_id: string): Promise<string[]> => {
  const ids: string[] = [];
  for (;;) {
    const page = await store.scan(listOwnedWorkspaces({ owner_id, after: ids.at(-1) ?? "", limit: PAGE }));
    ids.push(...page.map(({ id }) => id));
    if (page.length < PAGE) return ids;
  }
};

/** Reads these workspaces again and returns what the client does not have yet. */
const step = async (
  { store }: Pick<ApiContext, "store">,
  owner_id: string,
  shown: Map<string, SentWorkspace>,
  ids: Iterable<string>,
): Promise<Update> => {
  const update: Update = { upsertedWorkspaces: [], upsertedAgents: [], deletedWorkspaces: [], deletedAgents: [] };
  for (const id of ids) {
    const before = shown.get(id);
    const workspace = await store.get(findOwnedWorkspace({ id }));
    const isThere = workspace !== undefined && !workspace.deleted && workspace.owner_id === owner_id;
    const agents = isThere ? await store.all(listAgentsOfBuild({ build_id: workspace.latest_build_id })) : [];
    const now = new Map(agents.map((agent) => [agent.id, agent.name]));
    const workspaceId = uuidToBytes(id);
    for (const [agent, name] of before?.agents ?? []) {
      if (!now.has(agent)) update.deletedAgents.push({ id: uuidToBytes(agent), name, workspaceId });
    }
    if (!isThere) {
      if (before)
        update.deletedWorkspaces.push({ id: workspaceId, name: before.name, status: Workspace_Status.DELETED });
      shown.delete(id);
      continue;
    }
    const status = toStatus(workspace.status);
    if (before?.name !== workspace.name || before.status !== status) {
      update.upsertedWorkspaces.push({ id: workspaceId, name: workspace.name, status });
    }
    for (const [agent, name] of now) {
      if (before?.agents.get(agent) !== name) update.upsertedAgents.push({ id: uuidToBytes(agent), name, workspaceId });
    }
    shown.set(id, { name: workspace.name, status, agents: now });
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
  const known = BUILD_STATUSES.find((one) => one === status);
  return known ? STATUSES[known] : Workspace_Status.UNKNOWN;
};
