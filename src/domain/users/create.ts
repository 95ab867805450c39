// Creates a user with their organizations (facts/platform 9.2).

import type { Static } from "@sinclair/typebox";
import { forbidden, invalidField } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import type { Store } from "#db/engine/store.ts";
import { insertMember } from "#db/users/members.ts";
import { findOrganization } from "#db/users/organizations.ts";
import { findUser, insertUser, type User } from "#db/users/users.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import type { CreateUserRequest } from "#schema/users/user.ts";
import { canCreateUsers, canGiveSiteRoles, canSeeOrganization } from "../access.ts";
import type { DomainContext } from "../context.ts";
import { requireFullAccess, requireOwnKey } from "../factors/proof.ts";
import { auditUserCreated } from "./audit.ts";
import { toStoredEmail } from "./email.ts";
import { getDefaultOrganization } from "./first-user.ts";
import { toTakenConflict, USER_UNIQUE_FIELDS } from "./name-conflicts.ts";
import { userCreatedNotices } from "./notices.ts";
import { checkSiteRoles } from "./site-roles.ts";
import { checkUsername } from "./usernames.ts";

/** Rejects with 400, 403, or 409 for names that are taken. */
export const createUser = async (
  ctx: DomainContext,
  caller: UserCaller,
  input: Static<typeof CreateUserRequest>,
): Promise<{ readonly user: User; readonly organizations: readonly string[] }> => {
  const { store, clock, accounts, topics } = ctx;
  if (!canCreateUsers(caller)) throw forbidden("To create users you need the role user-admin or owner.");
  checkUsername(input.username);
  const { login_type, email } = toSignIn(input);
  if (login_type !== "none") await requireOwnKey(ctx, caller, "create users who sign in");
  if (login_type === "password") await accounts.passwords.check(input.password ?? "", input);
  if (login_type !== "password" && input.password) {
    throw invalidField("password", "A password requires login_type password.");
  }
  const roles = checkSiteRoles(input.roles ?? []);
  if (roles.length > 0 && !canGiveSiteRoles(caller)) throw forbidden("Only an owner may give site roles.");
  if (roles.length > 0) await requireFullAccess(ctx, caller, "give roles");
  const organizations = await resolveOrganizations(store, input.organization_ids, caller);
  const id = uuid();
  const password_hash = login_type === "password" ? await accounts.passwords.hash(input.password ?? "") : "";
  const now = clock.now();
  const times = { created_at: now, updated_at: now };
  const row = {
    ...times,
    id,
    email,
    username: input.username,
    name: input.name?.trim() ?? "",
    status: input.user_status ?? "dormant",
    login_type,
    password_hash,
    roles,
  } as const;
  await store
    .commit([
      insertUser(row),
      ...organizations.map((organization_id) => insertMember({ organization_id, user_id: id, roles: [], ...times })),
      auditUserCreated(row, now),
      ...(await userCreatedNotices({ store, now }, row, { name: caller.username, user_id: caller.user_id })),
    ])
    .catch((error) => Promise.reject(toTakenConflict(error, USER_UNIQUE_FIELDS)));
  topics.publish("notified", id, {});
  const user = await store.get(findUser({ id }));
  if (!user) throw new Error("a new user was deleted immediately");
  return { user, organizations };
};

type SignIn = { readonly login_type: User["login_type"]; readonly email: string };

const toSignIn = ({
  login_type: requestedType = "",
  service_account,
  email = "",
}: Static<typeof CreateUserRequest>): SignIn => {
  if (service_account && (email !== "" || requestedType === "password")) {
    throw invalidField("service_account", "A service account has neither an email address nor a password.");
  }
  const login_type = service_account ? "none" : requestedType || "password";
  if (login_type === "password" && email === "")
    throw invalidField("email", "An email address is required for a user who signs in.");
  return { login_type, email: toStoredEmail(email) };
};

/**
 * Returns the organizations a new user joins: the requested ones, or the default one. Rejects with 400 for one that the caller cannot see.
 */
const resolveOrganizations = async (store: Store, ids: string[] | undefined, caller: UserCaller): Promise<string[]> => {
  if (!ids || ids.length === 0) return [(await getDefaultOrganization(store)).id];
  const organizationIds = [...new Set(ids.map((id) => id.toLowerCase()))];
  for (const id of organizationIds) {
    const found = await store.get(findOrganization({ id }));
    if (!found || !canSeeOrganization(caller, id)) {
      throw invalidField("organization_ids", `There is no organization ${id}.`);
    }
  }
  return organizationIds;
};
