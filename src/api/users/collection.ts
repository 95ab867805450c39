// The list of users, and new ones (facts/platform 9.2).
import { Elysia, t } from "elysia";
import { forbidden, invalidField } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import { SearchQuery } from "#base/query.ts";
import type { Store } from "#db/engine/store.ts";
import { insertMember } from "#db/users/members.ts";
import { findOrganization } from "#db/users/organizations.ts";
import { countUsers, findUser, insertUser, searchUsers, type UserFilter } from "#db/users/users.ts";
import {
  mayCreateUsers,
  mayGiveSiteRoles,
  mayReadAllUsers,
  mayReadMembers,
  maySeeOrganization,
} from "#domain/access.ts";
import { userMade } from "#domain/users/audit.ts";
import { defaultOrganization, PREBUILDS_USER_ID } from "#domain/users/first-user.ts";
import { siteRoles } from "#domain/users/site-roles.ts";
import { takenOr, USER_NAMES } from "#domain/users/taken.ts";
import { showUser } from "#domain/users/user.ts";
import { checkUsername } from "#domain/users/usernames.ts";
import { CreateUserRequest, SITE_ROLES, USER_STATUSES, User } from "#schema/user.ts";
import type { ApiContext } from "../context.ts";
import { callers, type UserCaller } from "../http/caller.ts";
import { pageOf, pageQuery } from "../http/paging.ts";
import { fails } from "../http/responses.ts";

const tags = ["Users"];

const LIST_LOGIN_TYPES = ["password", "none", "github", "oidc", "token"] as const;

/** The filter of `q`, narrowed to what the caller may see. Throws 400. */
export const userFilter = (q: string, caller: UserCaller): UserFilter => {
  const query = new SearchQuery(q);
  const filter: UserFilter = {
    text: query.free,
    statuses: query.choices("status", USER_STATUSES),
    roles: query.choices("role", [...SITE_ROLES, "member"]),
    login_types: query.choices("login_type", LIST_LOGIN_TYPES),
    last_seen_after: query.time("last_seen_after"),
    last_seen_before: query.time("last_seen_before"),
    created_after: query.time("created_after"),
    created_before: query.time("created_before"),
    github_com_user_id: query.whole("github_com_user_id"),
    visible: mayReadAllUsers(caller)
      ? undefined
      : {
          user_id: caller.user_id,
          organizations: Object.keys(caller.organizations).filter((id) => mayReadMembers(caller, id)),
        },
    except: PREBUILDS_USER_ID,
  };
  query.end("Invalid user search query.");
  return filter;
};

/** The organizations a new user joins: those asked for, else the default one. 400 for one the caller cannot see. */
const organizationsFor = async (store: Store, ids: string[] | undefined, caller: UserCaller): Promise<string[]> => {
  if (!ids || ids.length === 0) return [(await defaultOrganization(store)).id];
  const wanted = [...new Set(ids.map((id) => id.toLowerCase()))];
  for (const id of wanted) {
    const found = await store.get(findOrganization({ id }));
    if (!found || !maySeeOrganization(caller, id)) {
      throw invalidField("organization_ids", `There is no organization ${id}.`);
    }
  }
  return wanted;
};

export const userCollection = (ctx: ApiContext) =>
  new Elysia()
    .use(callers)
    .get(
      "",
      async ({ caller, query }) => {
        const { store } = ctx;
        const filter = userFilter(query.q ?? "", caller);
        const cursor = query.after_id ? await store.get(findUser({ id: query.after_id.toLowerCase() })) : undefined;
        if (query.after_id && !cursor) throw invalidField("after_id", "There is no user with this id.");
        const page = { ...pageOf(query), after: cursor?.username.toLowerCase() };
        const [rows, counted] = await Promise.all([
          store.scan(searchUsers(filter, page)),
          store.scan(countUsers(filter)),
        ]);
        return { users: rows.map((row) => showUser(row, row.organization_ids)), count: counted[0]?.count ?? 0 };
      },
      {
        user: true,
        query: t.Object({
          q: t.Optional(
            t.String({
              maxLength: 2000,
              description:
                "Words are looked for in username, name and e-mail. Keys: status, role, login_type, last_seen_after, last_seen_before, created_after, created_before, github_com_user_id (the account that they have linked).",
            }),
          ),
          ...pageQuery,
        }),
        response: {
          200: t.Object({
            users: t.Array(User),
            count: t.Integer({ description: "All that match, not only this page." }),
          }),
          ...fails(400, 401),
        },
        detail: { tags, summary: "List users", description: "Those the caller may see, by username." },
      },
    )
    .post(
      "",
      async ({ caller, body, status }) => {
        const { store, clock, accounts } = ctx;
        if (!mayCreateUsers(caller)) throw forbidden("Creating users takes the role user-admin or owner.");
        checkUsername(body.username);
        const given: string = body.login_type ?? "";
        const login_type = body.service_account ? "none" : given || "password";
        const email = body.email ?? "";
        if (body.service_account && (email !== "" || given === "password")) {
          throw invalidField("service_account", "A service account has neither an e-mail address nor a password.");
        }
        if (login_type === "password" && email === "")
          throw invalidField("email", "Who signs in has an e-mail address.");
        if (login_type === "password") await accounts.passwords.check(body.password ?? "", body);
        if (login_type !== "password" && body.password) {
          throw invalidField("password", "A password goes only with login_type password.");
        }
        const roles = siteRoles(body.roles ?? []);
        if (roles.length > 0 && !mayGiveSiteRoles(caller)) throw forbidden("Only an owner may give site roles.");
        const organizations = await organizationsFor(store, body.organization_ids, caller);
        const password_hash = login_type === "password" ? await accounts.passwords.hash(body.password ?? "") : "";
        const id = uuid();
        const now = clock.now();
        const at = { created_at: now, updated_at: now };
        const user = {
          ...{ id, email, username: body.username, name: body.name?.trim() ?? "", ...at },
          ...{ status: body.user_status ?? "dormant", login_type, password_hash, roles },
        } as const;
        await store
          .commit([
            insertUser(user),
            ...organizations.map((organization_id) => insertMember({ organization_id, user_id: id, roles: [], ...at })),
            userMade(user, now),
          ])
          .catch((error) => Promise.reject(takenOr(error, USER_NAMES)));
        const made = await store.get(findUser({ id }));
        if (!made) throw new Error("a user that was just made is gone");
        return status(201, showUser(made, organizations));
      },
      {
        user: true,
        body: CreateUserRequest,
        response: { 201: User, ...fails(400, 401, 403, 409, 415) },
        detail: { tags, summary: "Create a user" },
      },
    );
