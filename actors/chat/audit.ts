// What the audit log tells of a chat: that it was made, archived, renamed, shared or deleted; never what is said in it (rules AU-1, AU-8).
// Pure but for who it is shared with, which is read; used by the chat actor alone.
import { originNow } from "#base/origin.ts";
import { type ChatShareChange, listChatShares } from "#db/chats/shares.ts";
import type { Statement } from "#db/engine/sql.ts";
import type { Store } from "#db/engine/store.ts";
import { type AuditEntry, audited, isAudited } from "#db/reports/audit/audit.ts";
import type { ChatState } from "./machine/chat-state.ts";

const about = ({ id, organization_id }: Pick<ChatState, "id" | "organization_id">, now: number) =>
  ({ now, resource_type: "chat", resource_id: id, target: id.slice(0, 8), organization_id }) as const;

/** The entry of a new chat. A sub-chat is made by its parent's turn, for whom the parent belongs to. */
export const chatMade = (state: ChatState, now: number): Statement => {
  const owner = originNow() === undefined ? { user_id: state.owner_id } : {};
  return audited({ ...about(state, now), ...owner, action: "create", after: state });
};

/** What a turn that writes has changed; of a chat that was just made the batch tells already. */
export const chatEntries = (
  before: ChatState | undefined,
  { state, gone = false }: { readonly state: ChatState; readonly gone?: boolean },
  now: number,
): readonly AuditEntry[] => {
  if (gone) return [chatDeleted(state, now)];
  if (!before) return NONE;
  // Most turns change nothing of this. A title that the server has made up is no news.
  const watched = originNow() === undefined ? OWN : OWN_AND_TITLE;
  if (watched.every((column) => before[column] === state[column])) return NONE;
  return isAudited("chat", before, state) ? [{ ...about(state, now), action: "write", before, after: state }] : NONE;
};

const NONE: readonly AuditEntry[] = [];
const OWN = ["archived", "labels", "permissions", "plan_mode", "workspace_id"] as const;
const OWN_AND_TITLE = [...OWN, "title"] as const;

export const chatDeleted = (state: ChatState, now: number): AuditEntry => ({
  ...about(state, now),
  action: "delete",
  before: state,
});

/** That its owner has changed what its model is given; nothing that lists show is another. */
export const chatSteered = (state: ChatState, operation: "compact" | "clear", now: number): AuditEntry => ({
  ...about(state, now),
  action: "write",
  before: state,
  after: state,
  additional: { operation },
});

type Shares = { user_acl: Record<string, string>; group_acl: Record<string, string> };

/** With whom it is shared before and after; `changes` null: with nobody any more. */
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
  return audited({ ...about(state, now), action: "write", before, after });
};
