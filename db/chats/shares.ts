// Shares of chats, looked up by chat and by reader. Written by the chat actor; access to sub-chats is decided by their root (rules CS-1 to
// CS-9).
import { and, eq, sql } from "drizzle-orm";
import { build, eqParam, findBy, query, type Statement, statement } from "../engine/sql.ts";
import type { Store } from "../engine/store.ts";
import { chat_shares } from "../schema/chat-shares.ts";
import { chats } from "../schema/chats.ts";
import { organizations } from "../schema/users.ts";
import { findSharingDisabled } from "../workspaces/sharing.ts";

export type ChatShareRow = typeof chat_shares.$inferSelect;
/** A subject's new role; null removes it. */
export type ChatShareChange = Pick<ChatShareRow, "subject" | "kind"> & { readonly role: "read" | null };

/** The shares of a root chat. Parameters: {chat}, its key. */
export const listChatShares = findBy(chat_shares, chat_shares.chat);

const findRoles = query(
  build
    .select({ role: chat_shares.role })
    .from(chat_shares)
    .innerJoin(chats, eq(chats.key, chat_shares.chat))
    .where(
      and(
        eq(chats.id, sql.placeholder("root")),
        sql`${chat_shares.subject} in (select value from json_each(${sql.placeholder("subjects")}))`,
      ),
    )
    .limit(1),
);

/** Returns whether the root chat with this ID is shared with one of these people and groups. */
export const isSharedWith = async (
  store: Pick<Store, "get">,
  root: string,
  subjects: readonly string[],
): Promise<boolean> =>
  subjects.length > 0 && (await store.get(findRoles({ root, subjects: JSON.stringify(subjects) }))) !== undefined;

/**
 * Returns which of the given root chats are shared with any of the people and groups. Parameters: {roots, subjects}, JSON arrays.
 * For `scan`.
 */
export const listSharedWith = query(
  build
    .selectDistinct({ id: chats.id })
    .from(chat_shares)
    .innerJoin(chats, eq(chats.key, chat_shares.chat))
    .where(
      and(
        sql`${chats.id} in (select value from json_each(${sql.placeholder("roots")}))`,
        sql`${chat_shares.subject} in (select value from json_each(${sql.placeholder("subjects")}))`,
      ),
    ),
);

const upsertShare = statement<{ chat: number; subject: string; kind: string; role: string }>(
  build
    .insert(chat_shares)
    .values({
      chat: sql.placeholder("chat") as never,
      subject: sql.placeholder("subject") as never,
      kind: sql.placeholder("kind") as never,
      role: sql.placeholder("role") as never,
    })
    .onConflictDoNothing(),
);
const deleteShare = statement<{ chat: number; subject: string }>(
  build.delete(chat_shares).where(and(eqParam(chat_shares.chat), eqParam(chat_shares.subject))),
);
const deleteShares = statement<{ chat: number }>(build.delete(chat_shares).where(eqParam(chat_shares.chat)));

export const changeChatShares = (chat: number, changes: readonly ChatShareChange[]): Statement[] =>
  changes.map(({ subject, kind, role }) =>
    role === null ? deleteShare({ chat, subject }) : upsertShare({ chat, subject, kind, role }),
  );

export const clearChatShares = (chat: number): Statement => deleteShares({ chat });

/** Shared chats of an organization that has disabled sharing. Parameters: {organization_id}. For `scan`. */
const listSharedIn = query(
  build
    .selectDistinct({ id: chats.id })
    .from(chat_shares)
    .innerJoin(chats, eq(chats.key, chat_shares.chat))
    .where(eqParam(chats.organization_id))
    .limit(10_000),
);
/** Returns chats of the organization that are shared with this person or group. Parameters: {organization_id, subject}. For `scan`. */
export const listChatsSharedWith = query(
  build
    .selectDistinct({ id: chats.id })
    .from(chat_shares)
    .innerJoin(chats, eq(chats.key, chat_shares.chat))
    .where(and(eqParam(chats.organization_id), eqParam(chat_shares.subject)))
    .limit(10_000),
);
const listOrganizationIds = query(build.select({ id: organizations.id }).from(organizations));

/** Returns chats that are shared although sharing is disabled; null checks all organizations. */
export const listForbiddenShares = async (
  store: Pick<Store, "get" | "all" | "scan">,
  organization_id: string | null,
): Promise<string[]> => {
  const organizationIds =
    organization_id === null ? await store.scan(listOrganizationIds()) : [{ id: organization_id }];
  const chatIds: string[] = [];
  for (const { id } of organizationIds) {
    if (!(await store.get(findSharingDisabled({ organization_id: id })))) continue;
    chatIds.push(...(await store.scan(listSharedIn({ organization_id: id }))).map((chat) => chat.id));
  }
  return chatIds;
};
