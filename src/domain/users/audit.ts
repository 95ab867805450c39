// Audit entries of accounts and their keys, for the batches that change them, over HTTP and on the command line (rules AU-1, AU-5).

import type { Statement } from "#db/engine/sql.ts";
import { audited } from "#db/reports/audit/audit.ts";
import type { api_keys } from "#db/schema/users.ts";
import type { User } from "#db/users/users.ts";

/** Returns the entry for a user whose fields are about to change. */
export const userChanged = (user: User, patch: Partial<User>, now: number): Statement =>
  audited({ ...about(user, now), action: "write", before: user, after: { ...user, ...patch } });

type NewUser = Pick<User, "id" | "username"> & Partial<User>;

export const userMade = (user: NewUser, now: number): Statement =>
  audited({ ...about(user, now), action: "create", after: user });

export const userDeleted = (user: User, now: number): Statement =>
  audited({ ...about(user, now), action: "delete", before: user });

const about = ({ id, username }: NewUser, now: number) =>
  ({ now, resource_type: "user", resource_id: id, target: username }) as const;

/** Returns the entry for a dormant account that becomes active with its first use. */
export const auditReactivation = (
  { status, ...user }: Pick<User, "id" | "username" | "status">,
  now: number,
): Statement[] =>
  status === "dormant"
    ? [
        audited({
          ...about(user, now),
          action: "write",
          user_id: user.id,
          before: { status },
          after: { status: "active" },
        }),
      ]
    : [];

type Key = typeof api_keys.$inferSelect;

/** Keys are identified by name; the key of a sign-in has none and is identified by its ID, which is not secret. */
export const keyChanged = (key: Key, change: { before?: Key; after?: Key }, now: number): Statement =>
  audited({
    now,
    resource_type: "api_key",
    target: key.token_name || key.id,
    additional: { key_id: key.id },
    ...change,
    action: change.before === undefined ? "create" : change.after === undefined ? "delete" : "write",
  });
