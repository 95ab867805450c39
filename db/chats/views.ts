// Chats as callers see them: the row with its owner's names, by key and in lists. Lists run on a reader Worker.
import {
  aliasedTable,
  and,
  asc,
  desc,
  eq,
  getTableColumns,
  inArray,
  isNull,
  notExists,
  or,
  type SQL,
  sql,
} from "drizzle-orm";
import { build, given, type Query, query } from "../engine/sql.ts";
import { chat_diffs } from "../schema/chat-diffs.ts";
import { chats } from "../schema/chats.ts";
import { chat_contexts, context_snapshots } from "../schema/context.ts";
import { users } from "../schema/users.ts";
import type { ChatRow } from "./chats.ts";
import { type PullFilter, pullConditions, type ShownDiff, shownDiff } from "./diffs.ts";
import { type Matching, matchingRoots, rootMatches } from "./search.ts";

export type ChatView = {
  readonly chat: ShownChat;
  readonly owner_username: string;
  readonly owner_name: string;
  /** Where the chat currently works: the newest build of its workspace, and the agent that tools use; null if none exists. */
  readonly build_id: string | null;
  readonly agent_id: string | null;
  /** Whether the chat or its root is shared. */
  readonly shared: boolean;
  /** The pinned context of the chat's workspace; null if none exists. */
  readonly context: { readonly snapshot: string; readonly error: string; readonly dirty_since: number | null } | null;
  /** Null if the chat has pushed nothing. */
  readonly diff: ShownDiff | null;
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
 * Without what only turns need: calls that wait for a result, tools of a client and the session of a coding agent may be megabytes for each
 * chat of a list.
 */
const {
  pending_calls: _calls,
  dynamic_tools: _tools,
  agent_session: _session,
  retry_state: _retry,
  compaction: _compaction,
  ...shownColumns
} = getTableColumns(chats);

/** A chat without what lists don't read. */
export type ShownChat = Pick<ChatRow, keyof typeof shownColumns>;

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
      diff: shownDiff,
    })
    .from(chats)
    .innerJoin(users, eq(users.id, chats.owner_id))
    .leftJoin(chat_contexts, eq(chat_contexts.chat, chats.key))
    .leftJoin(context_snapshots, eq(context_snapshots.id, chat_contexts.snapshot))
    .leftJoin(chat_diffs, eq(chat_diffs.chat, chats.key));

const cast = (made: unknown): Query<ChatView> => made as Query<ChatView>;

const byId = query(select().where(given(chats.id)));
export const findChatView = (id: string): Query<ChatView> => cast(byId({ id }));

/** Returns the sub-chats of these root chats, newest first. */
export const listChildViews = (roots: readonly string[]): Query<ChatView> =>
  cast(
    query(
      select()
        .where(inArray(chats.parent_chat_id, [...roots]))
        .orderBy(desc(chats.created_at), desc(chats.id)),
    )(),
  );

export type ChatFilter = {
  readonly owner_id: string;
  /** The user's own chats, other people's that are shared with one of these (the user and their organizations), or both. */
  readonly mine: boolean;
  readonly shared_with: readonly string[];
  readonly archived: boolean;
  readonly has_unread?: boolean | undefined;
  readonly title?: string | undefined;
  readonly labels: readonly { readonly key: string; readonly value: string }[];
  /** Search condition on messages and titles. */
  readonly search?: Matching | undefined;
  /** Conditions on the pull request. */
  readonly pull: PullFilter;
};

/** Returns the user's pinned root chats in order, starting after `after`. */
export const listPinnedViews = (filter: ChatFilter, after?: ShownChat | undefined): Query<ChatView> =>
  cast(
    query(
      select()
        .where(
          and(
            ...conditions({ ...filter, shared_with: [] }),
            sql`${chats.pin_order} > ${sql.raw(String(after?.pin_order ?? 0))}`,
          ),
        )
        .orderBy(asc(chats.pin_order), desc(chats.id)),
    )(),
  );

/** Number of chats at the top of a list that a search checks one by one before it reads the whole index. */
const WINDOW = 300;

/**
 * Returns the same page of a search, but only from the first chats of the list; a full page is the final result. Finds frequent words in a
 * few milliseconds, where reading all their matches took half a second.
 */
export const searchTopViews = (
  filter: ChatFilter,
  search: Matching,
  { limit, offset, after }: { limit: number; offset: number; after?: ShownChat | undefined },
): Query<ChatView> => {
  const plain = [...conditions({ ...filter, search: undefined }), isUnpinned(filter)];
  const top = build
    .select({ key: chats.key })
    .from(chats)
    .where(and(...plain, after ? behind(after) : undefined))
    .orderBy(desc(chats.updated_at), desc(chats.id))
    .limit(WINDOW);
  return cast(
    query(
      select()
        .where(and(inArray(chats.key, top), rootMatches(search)))
        .orderBy(desc(chats.updated_at), desc(chats.id))
        .limit(limit)
        .offset(offset),
    )(),
  );
};

/** Returns unpinned root chats, most recently active first, starting after `after`. Reads no more of the index than it returns. */
export const listChatViews = (
  filter: ChatFilter,
  { limit, offset, after }: { limit: number; offset: number; after?: ShownChat | undefined },
): Query<ChatView> =>
  cast(
    query(
      select()
        .where(and(...conditions(filter), isUnpinned(filter), after ? behind(after) : undefined))
        .orderBy(desc(chats.updated_at), desc(chats.id))
        .limit(limit)
        .offset(offset),
    )(),
  );

const conditions = (filter: ChatFilter): (SQL | undefined)[] => {
  const { archived, has_unread, title, labels, search, pull } = filter;
  return [
    toSource(filter),
    eq(chats.archived, archived),
    isNull(chats.parent_chat_id),
    has_unread === undefined
      ? undefined
      : sql`${sql.raw(has_unread ? "" : "not ")}(${chats.last_assistant_id} > ${chats.read_cursor})`,
    title === undefined ? undefined : sql`instr(lower(${chats.title}), ${title}) > 0`,
    ...labels.map(
      ({ key, value }) =>
        sql`exists (select 1 from json_each(${chats.labels}) l where l.key = ${key} and l.value = ${value})`,
    ),
    ...pullConditions(pull),
    search === undefined ? undefined : found(filter, search),
  ];
};

/** Finds other people's chats by their shares, and the user's own by the index of the list. */
const toSource = ({ owner_id, mine, shared_with }: ChatFilter): SQL | undefined => {
  const own = eq(chats.owner_id, owner_id);
  if (mine && shared_with.length === 0) return own;
  const shared = sql`(${chats.owner_id} <> ${owner_id} and ${chats.organization_id} in ${[...shared_with]} and ${chats.key} in
    (select s.chat from chat_shares s where s.subject in ${[...shared_with]}))`;
  return shared_with.length === 0 ? sql`false` : mine ? or(own, shared) : shared;
};

/** Ignores other people's pins. */
const isUnpinned = ({ owner_id, shared_with }: ChatFilter): SQL =>
  shared_with.length === 0
    ? sql`${chats.pin_order} = 0`
    : sql`(${chats.pin_order} = 0 or ${chats.owner_id} <> ${owner_id})`;

const found = ({ owner_id, shared_with }: ChatFilter, search: Matching): SQL => {
  // The unary plus makes SQLite walk the list in order and look up each key among the matches, never the other way round.
  const own = sql`+${chats.key} in (${matchingRoots(owner_id, search)})`;
  if (shared_with.length === 0) return own;
  return sql`case when ${chats.owner_id} = ${owner_id} then ${own} else ${rootMatches(search)} end`;
};

/** Rows after this one in the order of the list. */
const behind = ({ updated_at, id }: Pick<ShownChat, "updated_at" | "id">): SQL =>
  sql`(${chats.updated_at}, ${chats.id}) < (${updated_at}, ${id})`;

const newer = aliasedTable(chats, "newer");

/** Own chats, or chats shared with one of these, directly or through their root. */
const readable = (
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
  const laterOne = build
    .select({ one: sql`1` })
    .from(newer)
    .where(
      and(
        eq(newer.workspace_id, chats.workspace_id),
        eq(newer.archived, false),
        readable(newer, owner_id, shared_with),
        sql`(${newer.updated_at}, ${newer.id}) > (${chats.updated_at}, ${chats.id})`,
      ),
    );
  return query(
    build
      .select({ id: chats.id, workspace_id: chats.workspace_id })
      .from(chats)
      .where(
        and(
          readable(chats, owner_id, shared_with),
          eq(chats.archived, false),
          inArray(chats.workspace_id, [...workspaces]),
          notExists(laterOne),
        ),
      ),
  )();
};
