// First-time setup: whether a first user exists, and creating it with the token of the setup link (rules ID-1, ID-2).
import { t } from "elysia";
import { conflict, invalidField, notFound } from "#base/errors.ts";
import { createFirstUser, hasAnyUser } from "#domain/users/first-user.ts";
import { checkUsername } from "#domain/users/usernames.ts";
import { FirstUserRequest } from "#schema/users/user.ts";
import type { ApiContext } from "../context.ts";
import { operation } from "../http/operation.ts";
import { fails, Generic } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const tags = ["Users"];
/** For programs that can send custom headers but not this body member. */
const SETUP_HEADER = "Service-Setup-Token";

export const firstUser = (ctx: ApiContext) =>
  routes()
    .get(
      "/first",
      async () => {
        if (!(await hasAnyUser(ctx.store))) throw notFound();
        return { message: "The first user has been created." };
      },
      {
        response: { 200: Generic, ...fails(404) },
        detail: operation({
          tags,
          operationId: "checkFirstUser",
          access: "anyone",
          summary: "Check whether the first user exists",
          description: "Returns 404 until the first user is created.",
          security: [],
        }),
      },
    )
    .post(
      "/first",
      async ({ body, query, request, status }) => {
        const { store, clock, accounts } = ctx;
        if (await hasAnyUser(store)) throw conflict("The first user already exists.");
        checkUsername(body.username);
        const setup_token = body.setup_token || request.headers.get(SETUP_HEADER) || query.setup_token;
        if (!setup_token) {
          throw invalidField("setup_token", `is required, in the body, the header ${SETUP_HEADER} or the query`);
        }
        await accounts.setup.check(setup_token);
        const { email, username, name = "", password } = body;
        await accounts.passwords.check(password, body);
        const created = await createFirstUser(
          { store, clock, passwords: accounts.passwords },
          { email, username, name: name.trim(), password },
          "the setup link",
        );
        accounts.setupNeeded = false;
        return status(201, created);
      },
      {
        body: FirstUserRequest,
        query: t.Object({
          setup_token: t.Optional(t.String({ maxLength: 100, description: "The setup token, as in the body." })),
        }),
        response: {
          201: t.Object({ user_id: t.String({ format: "uuid" }), organization_id: t.String({ format: "uuid" }) }),
          ...fails(400, 403, 409, 415),
        },
        detail: operation({
          reads: "public",
          tags,
          operationId: "createFirstUser",
          access: "anyone",
          summary: "Create the first user",
          description:
            "Works once, with the token from the setup link that the server prints at startup. The user becomes an owner.",
          security: [],
          example: {
            setup_token: "from the link that the server prints",
            email: "you@example.com",
            username: "you",
            password: "a long enough secret",
          },
        }),
      },
    );
