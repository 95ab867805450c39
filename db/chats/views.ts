// Chats as callers see them: the row with its owner's names, by key and in lists. Lists run on a reader Worker.
import { aliasedTable, and, desc, eq, getTableColumns, inArray, notExists, or, type SQL, sql } from "drizzle-orm";
import { build, eqParam, type Query, query, queryNow } from "../engine/sql.ts";
import { chat_diffs } from "../schema/chat-diffs.ts";
import { chats } from "../schema/chats.ts";
import { chat_contexts, context_snapshots } from "../schema/context.ts";
import { users } from "../schema/users.ts";
import type { ChatRow } from "./chats.ts";
import { type ChatDiffView, diffColumns } from "./diffs.ts";

export type ChatView = {
  readonly chat: ListedChat;
  readonly owner_username: string;
  readonly owner_name: string;
  /** The newest build of the chat's workspace, and the agent that tools use; null without a build. */
  readonly build_id: string | null;
  readonly agent_id: string | null;
  /** Whether the chat or its root is shared. */
  readonly shared: boolean;
  /** The pinned context of the chat's workspace; null if none exists. */
  readonly context: { readonly snapshot: string; readonly error: string; readonly dirty_since: number | null } | null;
  /** The chat's pull request; null if the chat has not pushed a branch. */
  readonly diff: ChatDiffView | null;
};

const isShared = sql<boolean>`exists (select 1 from chat_shares s where s.chat = ${chats.key})
  or (${chats.parent_chat_id} is not null and exists
    (select 1 from chats root join chat_shares s on s.chat = root.key where root.id = ${chats.parent_chat_id}))`.mapWith(
  Boolean,
);

const buildId = sql<string | null>`(select w.latest_build_id from workspaces w
  where w.id = ${chats.workspace_id} and w.deleted = 0)`;
const agentId = sql<string | null>`(select a.id from workspaces w join agents a on a.build_id = w.latest_build_id
  where w.id = ${chats.workspace_id} and w.deleted = 0 and a.parent_id is null
  order by a.display_order, a.name limit 1)`;

/**
 * All columns except the ones that only turns need, because pending calls, a client's tools and a coding agent's session can be megabytes
 * for each chat of a list.
 */
const {
  pending_calls: _calls,
  dynamic_tools: _tools,
  agent_session: _session,
  retry_state: _retry,
  compaction: _compaction,
  ...shownColumns
} = getTableColumns(chats);

/** A chat with the columns that lists read. */
export type ListedChat = Pick<ChatRow, keyof typeof shownColumns>;

const select = () =>
  build
    .select({
      chat: shownColumns,
      owner_username: users.username,
      owner_name: users.name,
      shared: isShared,
      build_id: buildId,
      agent_id: agentId,
      context: {
        snapshot: chat_contexts.snapshot,
        error: context_snapshots.error,
        dirty_since: chat_contexts.dirty_since,
      },
      diff: diffColumns,
    })
    .from(chats)
    .innerJoin(users, eq(users.id, chats.owner_id))
    .leftJoin(chat_contexts, eq(chat_contexts.chat, chats.key))
    .leftJoin(context_snapshots, eq(context_snapshots.id, chat_contexts.snapshot))
    .leftJoin(chat_diffs, eq(chat_diffs.chat, chats.key));

const cast = (typedQuery: unknown): Query<ChatView> => typedQuery as Query<ChatView>;

const findViewById = query(select().where(eqParam(chats.id)));
export const findChatView = (id: string): Query<ChatView> => cast(findViewById({ id }));

const isListed = (column: typeof chats.id | typeof chats.parent_chat_id): SQL =>
  sql`${column} in (select value from json_each(${sql.placeholder("ids")}))`;

const listedViews = query(select().where(isListed(chats.id)));
/** Chats by their IDs, in any order. Compiled once, because compiling so many columns for each request would take too long. */
export const listChatViews = (ids: readonly string[]): Query<ChatView> =>
  cast(listedViews({ ids: JSON.stringify(ids) }));

const childViews = query(
  select().where(isListed(chats.parent_chat_id)).orderBy(desc(chats.created_at), desc(chats.id)),
);
/** Sub-chats of these root chats, newest first. */
export const listChildViews = (roots: readonly string[]): Query<ChatView> =>
  cast(childViews({ ids: JSON.stringify(roots) }));

const newer = aliasedTable(chats, "newer");

/** Matches the owner's chats, and chats shared with one of these subjects, directly or through their root. */
const isReadable = (
  chat: typeof chats | typeof newer,
  owner_id: string,
  shared_with: readonly string[],
): SQL | undefined =>
  shared_with.length === 0
    ? eq(chat.owner_id, owner_id)
    : or(
        eq(chat.owner_id, owner_id),
        sql`${chat.organization_id} in ${[...shared_with]} and exists (select 1 from chat_shares s join chats root on root.key = s.chat
          where root.id = coalesce(${chat.parent_chat_id}, ${chat.id}) and s.subject in ${[...shared_with]})`,
      );

/** Returns for each workspace the most recently active chat that this user can read. */
export const listChatsOfWorkspaces = (
  owner_id: string,
  shared_with: readonly string[],
  workspaces: readonly string[],
) => {
  const newerChat = build
    .select({ one: sql`1` })
    .from(newer)
    .where(
      and(
        eq(newer.workspace_id, chats.workspace_id),
        eq(newer.archived, false),
        isReadable(newer, owner_id, shared_with),
        sql`(${newer.updated_at}, ${newer.id}) > (${chats.updated_at}, ${chats.id})`,
      ),
    );
  return queryNow(
    build
      .select({ id: chats.id, workspace_id: chats.workspace_id })
      .from(chats)
      .where(
        and(
          isReadable(chats, owner_id, shared_with),
          eq(chats.archived, false),
          inArray(chats.workspace_id, [...workspaces]),
          notExists(newerChat),
        ),
      ),
  );
};
