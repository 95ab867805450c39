// Audit entries of accounts and their keys, for the batches that change them, over HTTP and on the command line (rules AU-1, AU-5).

import type { Statement } from "#db/engine/sql.ts";
import { insertAudit } from "#db/reports/audit/audit.ts";
import type { api_keys } from "#db/schema/users.ts";
import type { User } from "#db/users/users.ts";

/** Returns the entry for a user whose fields are about to change. */
export const auditUserChanged = (user: User, patch: Partial<User>, now: number): Statement =>
  insertAudit({ ...toAuditTarget(user, now), action: "write", before: user, after: { ...user, ...patch } });

type NewUser = Pick<User, "id" | "username"> & Partial<User>;

/** `by` names how users created their own account, such as `the setup link`. Without it, the user who is signed in or the server did. */
export const auditUserCreated = (user: NewUser, now: number, by?: string): Statement =>
  insertAudit({
    ...toAuditTarget(user, now),
    action: "create",
    after: user,
    ...(by === undefined ? {} : { user_id: user.id, additional: { by } }),
  });

export const auditUserDeleted = (user: User, now: number): Statement =>
  insertAudit({ ...toAuditTarget(user, now), action: "delete", before: user });

const toAuditTarget = ({ id, username }: NewUser, now: number) =>
  ({ now, resource_type: "user", resource_id: id, target: username }) as const;

/** Returns the entry for a dormant account that becomes active with its first use. */
export const auditReactivation = (
  { status, ...user }: Pick<User, "id" | "username" | "status">,
  now: number,
): Statement[] =>
  status === "dormant"
    ? [
        insertAudit({
          ...toAuditTarget(user, now),
          action: "write",
          user_id: user.id,
          before: { status },
          after: { status: "active" },
        }),
      ]
    : [];

type Key = typeof api_keys.$inferSelect;

/** Keys are identified by name; the key of a sign-in has none and is identified by its ID, which is not secret. */
export const auditKeyChanged = (key: Key, change: { before?: Key; after?: Key }, now: number): Statement =>
  insertAudit({
    now,
    resource_type: "api_key",
    target: key.token_name || key.id,
    additional: { key_id: key.id },
    ...change,
    action: change.before === undefined ? "create" : change.after === undefined ? "delete" : "write",
  });
