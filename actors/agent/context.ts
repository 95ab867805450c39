// Stores the context that an agent reports, one copy for all chats that pin it, and marks chats with another pinned context as dirty
// (facts/chats 5.5, rules CX-6 to CX-8). Used by the agent's actor: reads first, then returns the writes of one batch.
import { sha256 } from "#base/ids.ts";
import { findAgent } from "#db/agents/agents.ts";
import {
  dropSnapshots,
  findWorkspaceContext,
  insertSnapshot,
  listToggledChats,
  markDirty,
  upsertWorkspaceContext,
} from "#db/chats/context.ts";
import type { Statement } from "#db/engine/sql.ts";
import type { Store } from "#db/engine/store.ts";
import type { StoredResource } from "#schema/chats/chat-context.ts";

export type PushedContext = {
  readonly version: number;
  /** True for a daemon's first report, which restarts the count. */
  readonly initial: boolean;
  readonly error: string;
  readonly resources: readonly StoredResource[];
};

export type StoredContext = {
  readonly accepted: boolean;
  readonly writes: readonly Statement[];
  /** Chats whose dirty flag changed. */
  readonly toggled: readonly { readonly id: string; readonly owner_id: string }[];
};

const NOT_ACCEPTED: StoredContext = { accepted: false, writes: [], toggled: [] };

/** Stores a reported context. Rejects stale reports; accepts and discards those of nested agents. */
export const applyReportedContext = async (
  store: Store,
  { agent_id, workspace_id, now }: { agent_id: string; workspace_id: string; now: number },
  { version, initial, error, resources }: PushedContext,
): Promise<StoredContext> => {
  const agent = await store.get(findAgent({ id: agent_id }));
  if (!agent || agent.parent_id !== null) return { ...NOT_ACCEPTED, accepted: agent !== undefined };
  const current = await store.get(findWorkspaceContext({ workspace_id }));
  if (current?.agent_id === agent_id && !initial && version <= current.version) return NOT_ACCEPTED;
  const snapshot = makeSnapshot(resources, error);
  const upsert = upsertWorkspaceContext({ workspace_id, agent_id, version, snapshot: snapshot.id, updated_at: now });
  if (current?.snapshot === snapshot.id) return { accepted: true, writes: [upsert], toggled: [] };
  return {
    accepted: true,
    writes: [
      // Written even if the snapshot exists, because another holder may delete it before this commit.
      insertSnapshot(snapshot),
      upsert,
      markDirty(workspace_id, snapshot.hash, now),
      dropSnapshots(),
    ],
    toggled: await store.all(listToggledChats(workspace_id, snapshot.hash)),
  };
};

/** Builds a snapshot with two digests: one of everything, and one without MCP that decides whether chats are dirty. */
export const makeSnapshot = (resources: readonly StoredResource[], error: string) => {
  const sorted = [...resources].sort((a, b) => (`${a.kind} ${a.source}` < `${b.kind} ${b.source}` ? -1 : 1));
  const hashed = sorted.filter(({ kind }) => kind === "instruction_file" || kind === "skill");
  return {
    id: sha256(JSON.stringify([error, resources])),
    hash: sha256(JSON.stringify(hashed)),
    resources: [...resources],
    error,
  };
};
