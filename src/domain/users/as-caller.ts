// Acts on behalf of a user without a request, with their current access.
import type { Store } from "#db/engine/store.ts";
import { readMemberships } from "#db/users/members.ts";
import { findUser } from "#db/users/users.ts";
import type { UserCaller } from "#schema/users/caller.ts";

/** Returns the user as a caller; undefined when they are not active. */
export const loadCaller = async (store: Store, user_id: string): Promise<UserCaller | undefined> => {
  const user = await store.get(findUser({ id: user_id }));
  if (!user || user.status === "suspended") return undefined;
  return {
    kind: "user",
    user_id: user.id,
    username: user.username,
    roles: user.roles,
    ...(await readMemberships(store, user.id)),
    key_id: "",
    scopes: ["all"],
    compat: false,
  };
};
