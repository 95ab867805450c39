// Lists and creates users (facts/platform 9.2).
import { t } from "elysia";
import { invalidField } from "#base/errors.ts";
import { SearchQuery } from "#base/query.ts";
import { countUsers, searchUsers, type UserFilter } from "#db/users/search.ts";
import { findUser } from "#db/users/users.ts";
import { canReadAllUsers, canReadMembers } from "#domain/access.ts";
import { createUser } from "#domain/users/create.ts";
import { PREBUILDS_USER_ID } from "#domain/users/first-user.ts";
import { presentUser } from "#domain/users/present.ts";
import { CreateUserRequest, SITE_ROLES, USER_STATUSES, User } from "#schema/users/user.ts";
import type { ApiContext } from "../context.ts";
import { callers, type UserCaller } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { pageQuery, toPage } from "../http/paging.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const tags = ["Users"];

const LIST_LOGIN_TYPES = ["password", "none", "github", "oidc", "token"] as const;

/** Parses `q` into a filter, limited to what the caller can see. Throws 400. */
export const parseUserFilter = (q: string, caller: UserCaller): UserFilter => {
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
    github_com_user_id: query.integer("github_com_user_id"),
    visible: canReadAllUsers(caller)
      ? undefined
      : {
          user_id: caller.user_id,
          organizations: Object.keys(caller.organizations).filter((id) => canReadMembers(caller, id)),
        },
    except: PREBUILDS_USER_ID,
  };
  query.requireValid("Invalid user search query.");
  return filter;
};

export const userCollection = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "",
      async ({ caller, query }) => {
        const { store } = ctx;
        const filter = parseUserFilter(query.q ?? "", caller);
        const cursor = query.after_id ? await store.get(findUser({ id: query.after_id.toLowerCase() })) : undefined;
        if (query.after_id && !cursor) throw invalidField("after_id", "There is no user with this id.");
        const page = { ...toPage(query), after: cursor?.username.toLowerCase() };
        const [rows, countRows] = await Promise.all([
          store.scan(searchUsers(filter, page)),
          store.scan(countUsers(filter)),
        ]);
        return { users: rows.map((row) => presentUser(row, row.organization_ids)), count: countRows[0]?.count ?? 0 };
      },
      {
        user: true,
        query: t.Object({
          q: t.Optional(
            t.String({
              maxLength: 2000,
              description:
                "A search query of words, which match the username, name and email address, and `key:value` terms. Keys: status, role, login_type, last_seen_after, last_seen_before, created_after, created_before, github_com_user_id (the ID of a linked account).",
            }),
          ),
          ...pageQuery,
        }),
        response: {
          200: t.Object({
            users: t.Array(User),
            count: t.Integer({ description: "The total number of matches." }),
          }),
          ...fails(400, 401),
        },
        detail: operation({
          tags,
          operationId: "listUsers",
          summary: "List users",
          description: "Returns the users that the caller can see, sorted by username.",
          access: "users",
          scope: "user:read",
        }),
      },
    )
    .post(
      "",
      async ({ caller, body, status }) => {
        const { user, organizations } = await createUser(ctx, caller, body);
        return status(201, presentUser(user, organizations));
      },
      {
        user: true,
        body: CreateUserRequest,
        response: { 201: User, ...fails(400, 401, 403, 409, 415) },
        detail: operation({
          tags,
          operationId: "createUser",
          summary: "Create a user",
          example: { email: "ann@example.com", username: "ann", name: "Ann", password: "a long enough secret" },
          access: "admins",
          scope: "user:create",
        }),
      },
    );
