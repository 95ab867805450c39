// Contexts of workspaces and chats: the context that an agent reported last, the one that a chat has pinned, and since when the two
// differ (facts/chats 5.5, rules CX-6 to CX-10). Statements that depend on the newest value of another row read it in SQL, inside the
// batch.
import { eq, sql } from "drizzle-orm";
import { build, eqParam, findBy, insertInto, query, type Statement, statement } from "../engine/sql.ts";
import { chat_contexts, context_snapshots, workspace_contexts } from "../schema/context.ts";

export type WorkspaceContextRow = typeof workspace_contexts.$inferSelect;
export type SnapshotRow = typeof context_snapshots.$inferSelect;

/** The current context of a workspace. Parameters: {workspace_id}. */
export const findWorkspaceContext = findBy(workspace_contexts, workspace_contexts.workspace_id);

/** A snapshot of a context by its digest. Parameters: {id}. */
export const findSnapshot = findBy(context_snapshots, context_snapshots.id);

/** The pinned context of a chat. Parameters: {chat}, its key. */
export const findChatContext = query(
  build
    .select({
      agent_id: chat_contexts.agent_id,
      snapshot: chat_contexts.snapshot,
      pinned_at: chat_contexts.pinned_at,
      dirty_since: chat_contexts.dirty_since,
      hash: context_snapshots.hash,
      error: context_snapshots.error,
    })
    .from(chat_contexts)
    .innerJoin(context_snapshots, eq(context_snapshots.id, chat_contexts.snapshot))
    .where(eqParam(chat_contexts.chat)),
);

const insert = insertInto(context_snapshots);
/** Inserts a snapshot unless it exists already. */
export const insertSnapshot = (row: SnapshotRow): Statement => {
  const created = insert(row);
  return { ...created, sql: `${created.sql} on conflict do nothing` };
};

/** Stores the workspace's new context. */
export const upsertWorkspaceContext = statement<WorkspaceContextRow>(
  build
    .insert(workspace_contexts)
    .values({
      workspace_id: sql.placeholder("workspace_id"),
      agent_id: sql.placeholder("agent_id"),
      version: sql.placeholder("version") as never,
      snapshot: sql.placeholder("snapshot"),
      updated_at: sql.placeholder("updated_at") as never,
    })
    .onConflictDoUpdate({
      target: workspace_contexts.workspace_id,
      set: {
        agent_id: sql`excluded.agent_id`,
        version: sql`excluded.version`,
        snapshot: sql`excluded.snapshot`,
        updated_at: sql`excluded.updated_at`,
      },
    }),
  { alone: "contexts" },
);

/** Deletes snapshots that no workspace or chat references. */
export const dropSnapshots = (): Statement => ({
  touches: [],
  alone: "contexts",
  sql: `delete from context_snapshots where id in (select s.id from context_snapshots s
    where not exists (select 1 from workspace_contexts w where w.snapshot = s.id)
    and not exists (select 1 from chat_contexts c where c.snapshot = s.id))`,
  rows: [[]],
});

/**
 * Returns the chats of the workspace whose dirty flag changes when the workspace's context has the digest `hash`. Includes only chats
 * with a pinned context.
 */
export const listToggledChats = (workspace_id: string, hash: string) => findToggled({ workspace_id, hash });
const findToggled = query(
  build
    .select({ id: sql<string>`ch.id`.as("id"), owner_id: sql<string>`ch.owner_id`.as("owner_id") })
    .from(sql`chats ch join chat_contexts c on c.chat = ch.key join context_snapshots s on s.id = c.snapshot`)
    .where(
      sql`ch.workspace_id = ${sql.placeholder("workspace_id")} and ch.archived = 0
        and (s.hash <> ${sql.placeholder("hash")}) <> (c.dirty_since is not null)`,
    ),
);

/** Updates the dirty flag of every chat in the workspace. A chat that stays dirty keeps its time. */
export const markDirty = (workspace_id: string, hash: string, now: number): Statement => ({
  touches: [],
  alone: "contexts",
  sql: `update chat_contexts set dirty_since =
      case when (select s.hash from context_snapshots s where s.id = chat_contexts.snapshot) = ?2 then null
           else coalesce(dirty_since, ?3) end
    where chat in (select key from chats where workspace_id = ?1)`,
  rows: [[workspace_id, hash, now]],
});

/**
 * The condition that the owner of a chat `ch` may use a workspace `ws`, like `canUseWorkspace` in src/domain/access.ts: the workspace's
 * owner, an owner of the deployment, or a member of its organization with whom it is shared.
 */
const MAY_USE = `(ws.owner_id = ch.owner_id
  or exists (select 1 from users u, json_each(u.roles) r where u.id = ch.owner_id and r.value = 'owner')
  or exists (select 1 from organization_members m where m.organization_id = ws.organization_id and m.user_id = ch.owner_id
    and (exists (select 1 from json_each(ws.user_acl) a where a.key = ch.owner_id)
      or exists (select 1 from json_each(ws.group_acl) a where a.key = ws.organization_id
        or a.key in (select g.group_id from group_members g where g.user_id = ch.owner_id)))))`;

/**
 * Pins the workspace's current context, unless the chat has already pinned one, the workspace has none yet, or the chat's owner may no
 * longer use the workspace.
 */
export const pinContextOnce = (chat: number, workspace_id: string, now: number): Statement => ({
  touches: [],
  alone: "contexts",
  sql: `insert into chat_contexts (chat, agent_id, snapshot, pinned_at, dirty_since)
    select ch.key, w.agent_id, w.snapshot, ?3, null from chats ch
      join workspaces ws on ws.id = ?2 join workspace_contexts w on w.workspace_id = ws.id
      where ch.key = ?1 and ${MAY_USE}
    on conflict do nothing`,
  rows: [[chat, workspace_id, now]],
});

/** Replaces the chat's pinned context with the current one of `workspace_id`, if any. */
export const repinContext = (chat: number, workspace_id: string | null, now: number): Statement[] => [
  { touches: [], sql: "delete from chat_contexts where chat = ?1", rows: [[chat]] },
  ...(workspace_id === null ? [] : [pinContextOnce(chat, workspace_id, now)]),
  dropSnapshots(),
];

/** Removes the chat's pinned context. */
export const deleteChatContext = (chat: number): Statement[] => [
  { touches: [], sql: "delete from chat_contexts where chat = ?1", rows: [[chat]] },
  dropSnapshots(),
];
