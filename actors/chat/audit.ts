// Audit log entries of a chat: that it was created, archived, renamed, shared or deleted, never its content (rules AU-1, AU-8).
import { getCurrentOrigin } from "#base/origin.ts";
import { type ChatShareChange, listChatShares } from "#db/chats/shares.ts";
import type { Statement } from "#db/engine/sql.ts";
import type { Store } from "#db/engine/store.ts";
import { type AuditEntry, insertAudit, isAudited } from "#db/reports/audit/audit.ts";
import { toPermissionMode } from "#src/tools/permission-mode.ts";
import type { ChatState } from "./machine/chat-state.ts";

const toEntryBase = ({ id, organization_id }: Pick<ChatState, "id" | "organization_id">, now: number) =>
  ({ now, resource_type: "chat", resource_id: id, target: id.slice(0, 8), organization_id }) as const;

/** Adds the permission mode, which all readers of the log see. The rules in `permissions` are private. */
const toAuditRow = (state: ChatState) => ({ ...state, permission_mode: toPermissionMode(state) });

/** Returns the entry for a new chat. A turn creates sub-chats outside of any request, so their entry names the owner. */
export const auditChatCreated = (state: ChatState, now: number): Statement => {
  const owner = getCurrentOrigin() === undefined ? { user_id: state.owner_id } : {};
  return insertAudit({ ...toEntryBase(state, now), ...owner, action: "create", after: toAuditRow(state) });
};

/** Returns the entries for a change or deletion of a chat. A new chat gets none, because its batch already has an entry. */
export const auditChatChanges = (
  before: ChatState | undefined,
  { state, gone = false }: { readonly state: ChatState; readonly gone?: boolean },
  now: number,
): readonly AuditEntry[] => {
  if (gone) return [auditChatDeleted(state, now)];
  if (!before) return NO_ENTRIES;
  // Skips the costly comparison below for most messages. Titles that the server generates are not audited.
  const watched = getCurrentOrigin() === undefined ? AUDITED_FIELDS : AUDITED_FIELDS_AND_TITLE;
  if (watched.every((column) => before[column] === state[column])) return NO_ENTRIES;
  const [was, is] = [toAuditRow(before), toAuditRow(state)];
  return isAudited("chat", was, is)
    ? [{ ...toEntryBase(state, now), action: "write", before: was, after: is }]
    : NO_ENTRIES;
};

const NO_ENTRIES: readonly AuditEntry[] = [];
const AUDITED_FIELDS = ["archived", "labels", "permissions", "plan_mode", "workspace_id"] as const;
const AUDITED_FIELDS_AND_TITLE = [...AUDITED_FIELDS, "title"] as const;

export const auditChatDeleted = (state: ChatState, now: number): AuditEntry => ({
  ...toEntryBase(state, now),
  action: "delete",
  before: toAuditRow(state),
});

/** Returns the entry for a compacted or cleared context, which changes none of the chat's audited columns. */
export const auditContextChange = (state: ChatState, operation: "compact" | "clear", now: number): AuditEntry => ({
  ...toEntryBase(state, now),
  action: "write",
  before: state,
  after: state,
  additional: { operation },
});

type Shares = { user_acl: Record<string, string>; group_acl: Record<string, string> };

/** Returns the entry for a change of shares. `changes` is null when all shares were revoked. */
export const auditSharing = async (
  store: Pick<Store, "all">,
  state: ChatState,
  changes: readonly ChatShareChange[] | null,
  now: number,
): Promise<Statement> => {
  const before: Shares = { user_acl: {}, group_acl: {} };
  for (const { subject, kind, role } of await store.all(listChatShares({ chat: state.key }))) {
    before[`${kind}_acl`][subject] = role;
  }
  const after: Shares = changes === null ? { user_acl: {}, group_acl: {} } : structuredClone(before);
  for (const { subject, kind, role } of changes ?? []) {
    if (role === null) delete after[`${kind}_acl`][subject];
    else after[`${kind}_acl`][subject] = role;
  }
  return insertAudit({ ...toEntryBase(state, now), action: "write", before, after });
};
