// Notifies user administrators of every new account, however it was created (rule NO-6).
import type { Statement } from "#db/engine/sql.ts";
import type { Store } from "#db/engine/store.ts";
import { insertNotification } from "#db/notifications/notifications.ts";
import { listUserAdmins, type User } from "#db/users/users.ts";

/** How the account was created. */
export type CreatedBy = {
  /** A username, or a source such as `a sign-in at Acme`. */
  readonly name: string;
  /** The user who created it and needs no notification. */
  readonly user_id?: string;
  /** Another user waiting for it. */
  readonly also?: string | undefined;
};

/** Returns the notifications for the batch that creates the account. */
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
      insertNotification({
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
