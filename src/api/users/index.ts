// Users: who may sign in.
import { Elysia, t } from "elysia";
import { User } from "#schema/user.ts";
import { callers } from "../caller.ts";
import type { ApiContext } from "../context.ts";
import { fails } from "../responses.ts";
import { session } from "./session.ts";
import { showKnownUser, userAt } from "./user.ts";

const tags = ["Users"];
const path = t.Object({ user: t.String({ description: "User id, username or `me`." }) });

export const users = (ctx: ApiContext) =>
  new Elysia({ prefix: "/users" })
    .use(callers)
    .use(session(ctx))
    .get("/:user", async ({ caller, params }) => showKnownUser(await userAt(ctx.store, params.user, caller)), {
      user: true,
      params: path,
      response: { 200: User, ...fails(401, 404) },
      detail: { tags, summary: "Get a user" },
    });
