// Entries of the audit log as one reader sees them. A chat's title, labels and permissions are shown only to people who may read the
// chat: anyone else, and everyone once the chat is deleted, sees only that they changed (rule AU-20).
import { type ChatAccessRow, listChatAccessRows } from "#db/chats/chats.ts";
import { listSharedWith } from "#db/chats/shares.ts";
import { toZeroValue } from "#db/reports/audit/diff.ts";
import type { AuditEntryView } from "#db/reports/audit/search.ts";
import type { AuditDiff } from "#db/schema/audit.ts";
import type { AuditLog, ResourceType } from "#schema/audit.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { hasScope } from "#schema/users/scopes.ts";
import { canUpdateChat, isOwner, listReaderIds } from "../access.ts";
import { getRootId } from "../chats/find.ts";
import type { DomainContext } from "../context.ts";
import { presentEntry } from "./present.ts";

/** Fields whose values are not for everyone who reads the log. */
const PRIVATE: Partial<Record<ResourceType, readonly string[]>> = {
  chat: ["title", "labels", "permissions"],
  user_chat_settings: ["permissions"],
};

type Row = AuditEntryView["entry"];

const listPrivateFields = ({ resource_type, diff }: Pick<Row, "resource_type" | "diff">): readonly string[] =>
  PRIVATE[resource_type]?.filter((field) => Object.hasOwn(diff, field)) ?? [];

export const presentEntries = async (
  { store }: Pick<DomainContext, "store">,
  caller: UserCaller,
  rows: readonly AuditEntryView[],
): Promise<AuditLog[]> => {
  const chatRows = rows.filter(({ entry }) => entry.resource_type === "chat" && listPrivateFields(entry).length > 0);
  const readable = await listReadable(store, caller, [...new Set(chatRows.map(({ entry }) => entry.resource_id))]);
  const canRead = ({ resource_type, resource_id }: Row): boolean =>
    resource_type === "chat" ? readable.has(resource_id) : isOwner(caller) || resource_id === caller.user_id;
  return rows.map((shown) => {
    const log = presentEntry(shown);
    const fields = listPrivateFields(shown.entry);
    return fields.length === 0 || canRead(shown.entry) ? log : { ...log, diff: redactValues(log.diff, fields) };
  });
};

const redactValues = (diff: AuditDiff, fields: readonly string[]): AuditDiff =>
  Object.fromEntries(
    Object.entries(diff).map(([field, change]) => {
      const zero = toZeroValue(change.new ?? change.old);
      return [field, fields.includes(field) ? { old: zero, new: zero, secret: true } : change];
    }),
  );

/** Returns the IDs of those chats that the caller may read. */
const listReadable = async (
  store: DomainContext["store"],
  caller: UserCaller,
  ids: readonly string[],
): Promise<ReadonlySet<string>> => {
  if (ids.length === 0 || !hasScope(caller.scopes, "chat:read")) return new Set();
  const chats = await store.scan(listChatAccessRows({ ids: JSON.stringify(ids) }));
  const otherChats = chats.filter((chat) => !canUpdateChat(caller, chat));
  const shareable = otherChats.filter(({ organization_id }) => listReaderIds(caller, organization_id).length > 0);
  const shared = await listShared(store, caller, shareable);
  const isReadable = (chat: ChatAccessRow): boolean => canUpdateChat(caller, chat) || shared.has(getRootId(chat));
  return new Set(chats.filter(isReadable).map(({ id }) => id));
};

const listShared = async (
  store: DomainContext["store"],
  { user_id, groups }: UserCaller,
  chats: readonly ChatAccessRow[],
): Promise<ReadonlySet<string>> => {
  if (chats.length === 0) return new Set();
  const roots = JSON.stringify(chats.map(getRootId));
  const rows = await store.scan(listSharedWith({ roots, subjects: JSON.stringify([user_id, ...groups]) }));
  return new Set(rows.map(({ id }) => id));
};
