// Prepares a fresh install for sign-in: the default organization, the built-in account that owns prebuilt workspaces, and the first user,
// from the settings or through the setup link. Only one first user is ever created (rules ID-1, ID-2).

import type { Clock } from "#base/clock.ts";
import type { Config } from "#base/config.ts";
import { conflict } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import { UsageError } from "#base/usage-error.ts";
import { CommitError, type Store } from "#db/engine/store.ts";
import type { users } from "#db/schema/users.ts";
import { insertSetting } from "#db/settings.ts";
import { insertMember } from "#db/users/members.ts";
import { findDefaultOrganization, insertOrganization, type OrganizationRow } from "#db/users/organizations.ts";
import { findAnyUser, findUser, insertUser } from "#db/users/users.ts";
import { PREBUILDS_USER_ID } from "#schema/workspaces/prebuilds.ts";
import { auditUserCreated } from "./audit.ts";
import { toStoredEmail } from "./email.ts";
import type { Passwords } from "./passwords.ts";
import { closeSetupLinks } from "./setup-link.ts";

export { PREBUILDS_USER_ID };

export type FirstUserInput = { email: string; username: string; name: string; password: string };

type Deps = { store: Store; clock: Clock; passwords: Passwords };

export const hasAnyUser = async (store: Store): Promise<boolean> => (await store.get(findAnyUser())) !== undefined;

/** Returns the default organization, which exists from the first start. */
export const getDefaultOrganization = async (store: Store): Promise<OrganizationRow> => {
  const found = await store.get(findDefaultOrganization());
  if (!found) throw new Error("there is no default organization");
  return found;
};

/**
 * Creates the owner; `by` names how they created their own account, for the audit log. Rejects with 409 when there has ever been a first
 * user.
 */
export const createFirstUser = async ({ store, clock, passwords }: Deps, user: FirstUserInput, by?: string) => {
  if (await hasAnyUser(store)) throw conflict("The first user already exists.");
  const organization = await getDefaultOrganization(store);
  const email = toStoredEmail(user.email);
  const password_hash = await passwords.hash(user.password);
  const id = uuid();
  const now = clock.now();
  const { username, name } = user;
  const times = { created_at: now, updated_at: now };
  const row: typeof users.$inferInsert = {
    id,
    email,
    username,
    name,
    password_hash,
    ...times,
    status: "active",
    login_type: "password",
    roles: ["owner"],
  };
  try {
    await store.commit([
      // The unique key of this row lets only one of two concurrent first users succeed.
      insertSetting({ key: "first_user", value: id }),
      insertUser(row),
      insertMember({ organization_id: organization.id, user_id: id, roles: [], ...times }),
      auditUserCreated(row, now, by),
      ...(await closeSetupLinks(store)),
    ]);
  } catch (error) {
    if (error instanceof CommitError && error.reason === "constraint") throw conflict("The first user already exists.");
    throw error;
  }
  return { user_id: id, organization_id: organization.id };
};

/** Creates what a fresh data directory lacks; returns true when the first user must still be created through the setup link. */
export const prepareIdentity = async (deps: Deps, config: Config): Promise<boolean> => {
  const { store, clock } = deps;
  const now = clock.now();
  const times = { created_at: now, updated_at: now };
  if (!(await store.get(findDefaultOrganization()))) {
    await store.commit([
      insertOrganization({ id: uuid(), name: "default", display_name: "Default", is_default: true, ...times }),
    ]);
  }
  if (!(await store.get(findUser({ id: PREBUILDS_USER_ID })))) {
    await store.commit([
      insertUser({
        id: PREBUILDS_USER_ID,
        email: "",
        username: "prebuilds",
        name: "Prebuilds",
        ...times,
        status: "active",
        login_type: "none",
      }),
    ]);
  }
  if (await hasAnyUser(store)) return false;
  const { admin_email: email, admin_username: username, admin_password: password } = config;
  if (!email || !username || !password) return true;
  const weakness = await deps.passwords.problem(password, { email, username });
  if (weakness) throw new UsageError([{ name: "admin_password", from: "settings", detail: weakness }]);
  await createFirstUser(deps, { email, username, name: "", password });
  return false;
};
