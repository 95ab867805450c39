// Chats as callers see them: the row with its owner's names, by key and in lists. Lists run on a reader Worker.
import { aliasedTable, and, asc, desc, eq, inArray, isNull, type SQL, sql } from "drizzle-orm";
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
  /** False: nothing matches, as for a key that no chat has yet. */
  readonly possible: boolean;
};

/** Root chats: pinned ones first by their place, then the one that moved last; from behind `after` on. */
export const listChatViews = (
  filter: ChatFilter,
  { limit, offset, after }: { limit: number; offset: number; after?: ChatRow | undefined },
): Query<ChatView> =>
  cast(
    query(
      select()
        .where(and(...conditions(filter), after ? behind(after) : undefined))
        .orderBy(asc(sql`${chats.pin_order} = 0`), asc(chats.pin_order), desc(chats.updated_at), desc(chats.id))
        .limit(limit)
        .offset(offset),
    )(),
  );

const conditions = ({ owner_id, archived, has_unread, title, labels, possible }: ChatFilter): (SQL | undefined)[] => [
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
];

/** Rows that come after this one in the order of the list. */
const behind = ({ pin_order, updated_at, id }: ChatRow): SQL =>
  sql`(${chats.pin_order} = 0, ${chats.pin_order}, -${chats.updated_at}) > (${Number(pin_order === 0)}, ${pin_order}, ${-updated_at})
    or ((${chats.pin_order}, ${chats.updated_at}) = (${pin_order}, ${updated_at}) and ${chats.id} < ${id})`;

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
