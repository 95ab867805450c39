// Audit log entries of passkeys.

import type { Statement } from "#db/engine/sql.ts";
import { insertAudit } from "#db/reports/audit/audit.ts";
import type { Passkey } from "#db/users/passkeys.ts";
import type { User } from "#db/users/users.ts";

export const auditPasskey = (
  { id, username }: Pick<User, "id" | "username">,
  change: { before?: Passkey; after?: Passkey },
  now: number,
): Statement =>
  insertAudit({
    now,
    resource_type: "passkey",
    resource_id: id,
    target: username,
    ...change,
    action: change.before === undefined ? "create" : change.after === undefined ? "delete" : "write",
  });
