// Chats as callers see them: the row with its owner's names, by key and in lists. Lists run on a reader Worker.
import { aliasedTable, and, asc, desc, eq, inArray, isNull, type SQL, sql } from "drizzle-orm";
import { type Matching, matchingRoots, rootMatches } from "./chat-search.ts";
import type { ChatRow } from "./chats.ts";
import { chats } from "./schema/chats.ts";
import { users } from "./schema/users.ts";
import { build, type Query, query } from "./sql.ts";

export type ChatView = { readonly chat: ChatRow; readonly owner_username: string; readonly owner_name: string };

const select = () =>
  build
    .select({ chat: chats, owner_username: users.username, owner_name: users.name })
    .from(chats)
    .innerJoin(users, eq(users.id, chats.owner_id));

const cast = (made: unknown): Query<ChatView> => made as Query<ChatView>;

const byId = query(select().where(eq(chats.id, sql.placeholder("id"))));
export const findChatView = (id: string): Query<ChatView> => cast(byId({ id }));

/** Sub-chats of these root chats, newest first. */
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
  readonly archived: boolean;
  readonly has_unread?: boolean | undefined;
  readonly title?: string | undefined;
  readonly labels: readonly { readonly key: string; readonly value: string }[];
  /** What must be said in the chat or its title. */
  readonly search?: Matching | undefined;
  /** False: nothing matches, as for a key that no chat has yet. */
  readonly possible: boolean;
};

/** Pinned root chats by their place; from behind `after` on. */
export const listPinnedViews = (filter: ChatFilter, after?: ChatRow | undefined): Query<ChatView> =>
  cast(
    query(
      select()
        .where(and(...conditions(filter), sql`${chats.pin_order} > ${sql.raw(String(after?.pin_order ?? 0))}`))
        .orderBy(asc(chats.pin_order), desc(chats.id)),
    )(),
  );

/** So many chats at the top of a list are asked one by one for a search before the index is read from end to end. */
const WINDOW = 300;

/**
 * The same page of a search, but only of what is found among the first chats of the list: a full page of it is the page. Words that are
 * everywhere are found so in a few milliseconds; reading all their matches took half a second.
 */
export const searchTopViews = (
  filter: ChatFilter,
  search: Matching,
  { limit, offset, after }: { limit: number; offset: number; after?: ChatRow | undefined },
): Query<ChatView> => {
  const plain = [...conditions({ ...filter, search: undefined }), sql`${chats.pin_order} = 0`];
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

/** Root chats that are not pinned, the one that moved last first; from behind `after` on. Reads no more of the index than it returns. */
export const listChatViews = (
  filter: ChatFilter,
  { limit, offset, after }: { limit: number; offset: number; after?: ChatRow | undefined },
): Query<ChatView> =>
  cast(
    query(
      select()
        .where(and(...conditions(filter), sql`${chats.pin_order} = 0`, after ? behind(after) : undefined))
        .orderBy(desc(chats.updated_at), desc(chats.id))
        .limit(limit)
        .offset(offset),
    )(),
  );

const conditions = (filter: ChatFilter): (SQL | undefined)[] => {
  const { owner_id, archived, has_unread, title, labels, search, possible } = filter;
  return [
    possible ? undefined : sql`0`,
    eq(chats.owner_id, owner_id),
    eq(chats.archived, archived),
    isNull(chats.parent_chat_id),
    has_unread === undefined
      ? undefined
      : sql`(${chats.last_assistant_id} > ${chats.read_cursor}) = ${Number(has_unread)}`,
    title === undefined ? undefined : sql`instr(lower(${chats.title}), ${title}) > 0`,
    ...labels.map(
      ({ key, value }) =>
        sql`exists (select 1 from json_each(${chats.labels}) l where l.key = ${key} and l.value = ${value})`,
    ),
    // The plus: the list is walked in its order and each key is looked up among the matches, never the other way round.
    search === undefined ? undefined : sql`+${chats.key} in (${matchingRoots(owner_id, search)})`,
  ];
};

/** Rows that come after this one in the order of the list. */
const behind = ({ updated_at, id }: ChatRow): SQL => sql`(${chats.updated_at}, ${chats.id}) < (${updated_at}, ${id})`;

const newer = aliasedTable(chats, "newer");
/** For each workspace the chat of this owner that moved last. */
export const listChatsOfWorkspaces = (owner_id: string, workspaces: readonly string[]) =>
  query(
    build
      .select({ id: chats.id, workspace_id: chats.workspace_id })
      .from(chats)
      .where(
        and(
          eq(chats.owner_id, owner_id),
          eq(chats.archived, false),
          inArray(chats.workspace_id, [...workspaces]),
          sql`not exists (select 1 from ${chats} as ${newer} where ${newer.workspace_id} = ${chats.workspace_id} and ${newer.owner_id} = ${chats.owner_id} and ${newer.archived} = 0 and (${newer.updated_at}, ${newer.id}) > (${chats.updated_at}, ${chats.id}))`,
        ),
      ),
  )();
