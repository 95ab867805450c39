// Account management from the machine itself, without sign-in: used by the commands `setup`, `user` and `token`. Names, passwords and
// lifetimes follow the same rules as over HTTP; access to the data directory is the authorization.

import type { Clock } from "#base/clock.ts";
import { EMAIL_PROBLEM, isEmailAddress } from "#base/email-address.ts";
import { AppError, invalid, invalidField } from "#base/errors.ts";
import { keyId, NIL_UUID, uuid } from "#base/ids.ts";
import { type GetOrigin, withOrigin } from "#base/origin.ts";
import type { Store } from "#db/engine/store.ts";
import { setTimersOfOwner } from "#db/engine/timers.ts";
import { insertAudit } from "#db/reports/audit/audit.ts";
import { deleteFactorsByUser } from "#db/second-factors.ts";
import { type ApiKey, deleteKey, deleteKeysByUser, findKey, findKeyByName, listAllTokens } from "#db/users/api-keys.ts";
import { insertMember } from "#db/users/members.ts";
import { type ListedUser, searchUsers } from "#db/users/search.ts";
import { findUser, findUserByName, insertUser, type User, updateUser } from "#db/users/users.ts";
import { markLossesOfUser } from "#db/workspaces/sharing.ts";
import { auditKeyChanged, auditUserChanged, auditUserCreated } from "./audit.ts";
import { findAccountByEmail, toStoredEmail } from "./email.ts";
import { createFirstUser, getDefaultOrganization, hasAnyUser, PREBUILDS_USER_ID } from "./first-user.ts";
import { createKey } from "./keys.ts";
import { parseLifetimeSeconds } from "./lifetime.ts";
import { toTakenConflict, USER_UNIQUE_FIELDS } from "./name-conflicts.ts";
import { userCreatedNotices } from "./notices.ts";
import { Passwords } from "./passwords.ts";
import { checkSiteRoles } from "./site-roles.ts";
import { checkUsername } from "./usernames.ts";

const PAGE_SIZE = 500;

export class MachineAccounts {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #passwords: Passwords;

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
    this.#passwords = new Passwords(clock);
  }

  /** Returns all users by username. */
  async listUsers(): Promise<ListedUser[]> {
    const users: ListedUser[] = [];
    for (;;) {
      const after = users.at(-1)?.username.toLowerCase();
      const page = await this.#store.scan(
        searchUsers({ except: PREBUILDS_USER_ID }, { limit: PAGE_SIZE, offset: 0, after }),
      );
      for (const user of page) users.push(user);
      if (page.length < PAGE_SIZE) return users;
    }
  }

  /** Finds a user by username, email address or ID. Rejects with 404. */
  async getUser(text: string): Promise<User> {
    const found =
      (await this.#store.get(findUserByName({ username: text }))) ??
      (await findAccountByEmail(this.#store, text)) ??
      (await this.#store.get(findUser({ id: text.toLowerCase() })));
    if (!found || found.id === PREBUILDS_USER_ID) throw new AppError("not_found", `There is no user "${text}".`);
    return found;
  }

  /** Creates the first owner. Rejects with 409 when there is already a user. */
  async setUp(user: { username: string; email: string; password: string }): Promise<string> {
    await this.#checkInput(user);
    const created = await runAsMachine(() =>
      createFirstUser({ store: this.#store, clock: this.#clock, passwords: this.#passwords }, { ...user, name: "" }),
    );
    return created.user_id;
  }

  /** Creates an active user in the default organization. Rejects with 409 for a name that is taken. */
  async create(user: { username: string; email: string; password: string; roles: readonly string[] }): Promise<string> {
    if (!(await hasAnyUser(this.#store)))
      throw new AppError("conflict", "There are no users yet. Create the first one with `slipway offline setup`.");
    await this.#checkInput(user);
    const roles = checkSiteRoles(user.roles);
    const organization = await getDefaultOrganization(this.#store);
    const password_hash = await this.#passwords.hash(user.password);
    const id = uuid();
    const times = { created_at: this.#clock.now(), updated_at: this.#clock.now() };
    const { username } = user;
    const email = toStoredEmail(user.email);
    const row = {
      id,
      email,
      username,
      status: "active",
      login_type: "password",
      password_hash,
      roles,
      ...times,
    } as const;
    const deps = { store: this.#store, now: times.created_at };
    const notices = await userCreatedNotices(deps, row, { name: "the command line on the server" });
    await this.#store
      .commit([
        insertUser(row),
        insertMember({ organization_id: organization.id, user_id: id, roles: [], ...times }),
        runAsMachine(() => auditUserCreated(row, times.created_at)),
        ...notices,
      ])
      .catch((error) => Promise.reject(toTakenConflict(error, USER_UNIQUE_FIELDS)));
    return id;
  }

  /** Suspends a user and revokes all their keys, or reactivates a user; the last owner who can sign in cannot be suspended. */
  async setSuspended(text: string, suspended: boolean): Promise<User> {
    const user = await this.getUser(text);
    if (
      suspended &&
      user.roles.includes("owner") &&
      (await this.#listActiveOwners()).every(({ id }) => id === user.id)
    ) {
      throw invalid("The last owner cannot be suspended.");
    }
    const status = suspended ? "suspended" : "active";
    if (user.status === status) return user;
    const now = this.#clock.now();
    await this.#store.commit([
      updateUser(user.id, { status, updated_at: now }),
      ...(suspended ? [deleteKeysByUser({ user_id: user.id, except: "" }), markLossesOfUser(user.id, now)] : []),
      // The workspaces of a suspended user stop at the next start (rule TI-16).
      setTimersOfOwner(user.id, "schedule", now),
      runAsMachine(() => auditUserChanged(user, { status }, now)),
    ]);
    return { ...user, status };
  }

  /** Sets a password; all sessions and tokens of the user are revoked. */
  async setPassword(text: string, password: string): Promise<User> {
    const user = await this.getUser(text);
    if (user.login_type !== "password") throw invalidField("password", "This user does not sign in with a password.");
    await this.#passwords.check(password, user);
    const password_hash = await this.#passwords.hash(password);
    const now = this.#clock.now();
    await this.#store.commit([
      updateUser(user.id, { password_hash, password_reset_at: now, updated_at: now }),
      markLossesOfUser(user.id, now),
      deleteKeysByUser({ user_id: user.id, except: "" }),
      runAsMachine(() => auditUserChanged(user, { password_hash }, now)),
    ]);
    return user;
  }

  /** Removes all second factors of a user: the password alone is enough to sign in again. */
  async resetFactors(text: string): Promise<User> {
    const user = await this.getUser(text);
    const { id: resource_id, username: target } = user;
    const base = { now: this.#clock.now(), resource_type: "second_factor", resource_id, target } as const;
    await this.#store.commit([
      ...deleteFactorsByUser(user.id),
      runAsMachine(() => insertAudit({ ...base, action: "delete", before: { kind: "all" } })),
    ]);
    return user;
  }

  /** Returns the tokens of everyone, or of one user. */
  async listTokens(owner?: string): Promise<{ key: ApiKey; username: string }[]> {
    const user_id = owner === undefined ? undefined : (await this.getUser(owner)).id;
    const rows = await this.#store.scan(listAllTokens({ now: this.#clock.now() }));
    return user_id === undefined ? rows : rows.filter(({ key }) => key.user_id === user_id);
  }

  /** Creates a token; its text is shown only once. */
  async createToken(
    owner: string,
    options: { name?: string; lifetime?: string },
  ): Promise<{ id: string; name: string; token: string; expires_at: number }> {
    const user = await this.getUser(owner);
    const name = options.name ?? `token-${keyId()}`;
    if (!/^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,63}$/.test(name))
      throw invalidField("name", "Up to 64 letters, digits, `_ . -`.");
    const now = this.#clock.now();
    const lifetime_seconds = parseLifetimeSeconds(options.lifetime, user.roles);
    const created = createKey({ user_id: user.id, login_type: "token", token_name: name, lifetime_seconds, now });
    await this.#store
      .commit([...created.statements, runAsMachine(() => auditKeyChanged(created.row, { after: created.row }, now))])
      .catch((error) => Promise.reject(toTakenConflict(error, { token_name: "name", api_keys_name: "name" })));
    return { id: created.id, name, token: created.token, expires_at: now + lifetime_seconds * 1000 };
  }

  /** Revokes a token, named by its ID, or by its name and owner. */
  async revokeToken(text: string, owner?: string): Promise<string> {
    const user = owner === undefined ? undefined : await this.getUser(owner);
    const key = user
      ? await this.#store.get(findKeyByName({ user_id: user.id, name: text }))
      : await this.#store.get(findKey({ id: text }));
    if (!key) throw new AppError("not_found", `There is no token "${text}".`);
    const entry = runAsMachine(() => auditKeyChanged(key, { before: key }, this.#clock.now()));
    await this.#store.commit([deleteKey(key.id), entry]);
    return key.id;
  }

  async #listActiveOwners(): Promise<ListedUser[]> {
    return (await this.listUsers()).filter(({ roles, status }) => roles.includes("owner") && status !== "suspended");
  }

  async #checkInput({
    username,
    email,
    password,
  }: {
    username: string;
    email: string;
    password: string;
  }): Promise<void> {
    if (!/^(?=.{1,32}$)[a-zA-Z0-9]+(-[a-zA-Z0-9]+)*$/.test(username)) {
      throw invalidField("username", "1 to 32 letters and digits, in groups joined by single hyphens.");
    }
    checkUsername(username);
    if (!isEmailAddress(email)) throw invalidField("email", EMAIL_PROBLEM);
    await this.#passwords.check(password, { username, email });
  }
}

/** There is no account behind these actions, so the audit log names the command line (rule AU-4). */
const runAsMachine = <T>(work: () => T): T => withOrigin(MACHINE, work);
const MACHINE: GetOrigin = () => ({
  user_id: null,
  ip: null,
  user_agent: "slipway",
  request_id: NIL_UUID,
  note: { by: "command line" },
});
