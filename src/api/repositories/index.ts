// Repositories on git hosts: those the caller has opened, and a preview of the workspace for one.
import { t } from "elysia";
import { inspectRepository } from "#domain/repositories/look.ts";
import { listRecentRepositories } from "#domain/repositories/recent.ts";
import { ReadRepository, RecentRepository, RepositoryFound } from "#schema/templates/repository.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { repositoryPrebuilds, repositoryPushes } from "./prebuilds.ts";

export const repositories = (ctx: ApiContext) =>
  routes({ prefix: "/repositories" })
    .use(repositoryPushes(ctx))
    .use(repositoryPrebuilds(ctx))
    .use(callers)
    .get("", ({ caller }) => listRecentRepositories(ctx, caller), {
      user: true,
      response: { 200: t.Array(RecentRepository), ...fails(401, 403) },
      detail: operation({
        tags: ["Workspaces"],
        operationId: "listRecentRepositories",
        summary: "List recent repositories",
        description:
          "Returns the repositories that the caller's workspaces were created from, most recently used first; at most 12.",
        access: "users",
        scope: "workspace:read",
      }),
    })
    .post("/read", ({ caller, body }) => inspectRepository(ctx, caller, body.repository), {
      user: true,
      body: ReadRepository,
      response: { 200: RepositoryFound, ...fails(400, 401, 403, 413, 503) },
      detail: operation({
        tags: ["Workspaces"],
        operationId: "readRepository",
        summary: "Preview a workspace from a repository",
        description:
          "Reads a repository with the caller's linked account and returns the workspace that would be created from it. Creates nothing. `problem` is the reason a repository can't be read.",
        example: { repository: { url: "https://github.com/acme/app" } },
        access: "users",
        scope: "workspace:create",
      }),
    });
