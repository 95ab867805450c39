// What people who look after users are notified of: every new account, however it came to be (rule NO-6).
import type { Statement } from "#db/engine/sql.ts";
import type { Store } from "#db/engine/store.ts";
import { notified } from "#db/notifications/notifications.ts";
import { listUserAdmins, type User } from "#db/users/users.ts";

/** How the account came to be. */
export type CreatedBy = {
  /** A username, or what did it, such as `a sign-in at Acme`. */
  readonly name: string;
  /** Who did it: they need no notice. */
  readonly user_id?: string;
  /** Someone else who is waiting for it. */
  readonly also?: string | undefined;
};

/** Returns the notices for the batch that makes the account. */
export const userCreatedNotices = async (
  { store, now }: { readonly store: Pick<Store, "all">; readonly now: number },
  { id, username }: Pick<User, "id" | "username">,
  { name, user_id, also }: CreatedBy,
): Promise<Statement[]> => {
  const admins = (await store.all(listUserAdmins())).map((one) => one.id);
  const people = new Set(also === undefined ? admins : [...admins, also]);
  return [...people]
    .filter((one) => one !== user_id && one !== id)
    .map((one) =>
      notified({
        now,
        user_id: one,
        kind: "user_created",
        values: { user: username, initiator: name },
        targets: [id],
        path: "/admin/people",
        dedupe: `user_created:${id}`,
      }),
    );
};
