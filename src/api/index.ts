// Every resource of the API, one line each. A new resource is added here and nowhere else.
import { Elysia } from "elysia";
import { agents } from "./agents/index.ts";
import { buildinfo } from "./buildinfo.ts";
import type { ApiContext } from "./context.ts";
import { organizations } from "./organizations/index.ts";
import { users } from "./users/index.ts";

/** All routes under /api/v2. */
export const api = (ctx: ApiContext) =>
  new Elysia({ prefix: "/api/v2" }).use(buildinfo(ctx)).use(organizations(ctx)).use(agents(ctx)).use(users(ctx));
