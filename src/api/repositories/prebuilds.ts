// Repository prebuilds: images built in advance, and the webhook that receives pushes from hosts.
import { t } from "elysia";
import {
  addRepositoryPrebuild,
  buildRepositoryPrebuild,
  listVisiblePrebuilds,
  receivePush,
  removeRepositoryPrebuild,
} from "#domain/repositories/prebuilds.ts";
import {
  CreatedRepositoryPrebuild,
  NewRepositoryPrebuild,
  RepositoryPrebuild,
} from "#schema/templates/repository-prebuild.ts";
import type { ApiContext } from "../context.ts";
import { readCountedBytes } from "../http/body/body.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, NoContent } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const tags = ["Workspaces"];
const user = true;
const params = t.Object({ prebuild: t.String({ format: "uuid", description: "The ID of the prebuild." }) });
const changeOptions = { user, params, response: { 204: NoContent, ...fails(401, 403, 404) } } as const;
/** GitHub lists at most 2,048 commits of a push. */
const MAX_EVENT_BYTES = 5 * 1024 * 1024;

export const repositoryPrebuilds = (ctx: ApiContext) =>
  routes({ prefix: "/prebuilds" })
    .use(callers)
    .get("", ({ caller }) => listVisiblePrebuilds(ctx, caller), {
      user,
      response: { 200: t.Array(RepositoryPrebuild), ...fails(401, 403) },
      detail: operation({
        tags,
        operationId: "listRepositoryPrebuilds",
        access: "users",
        summary: "List repository prebuilds",
        description: "Returns the prebuilds of all organizations whose templates the caller can manage.",
        scope: "template:read",
      }),
    })
    .post("", async ({ caller, body, status }) => status(201, await addRepositoryPrebuild(ctx, caller, body)), {
      user,
      body: NewRepositoryPrebuild,
      response: { 201: CreatedRepositoryPrebuild, ...fails(400, 401, 403, 409, 413, 415, 503) },
      detail: operation({
        tags,
        operationId: "createRepositoryPrebuild",
        access: "admins",
        summary: "Create a repository prebuild",
        description:
          "Builds the image for the newest commit of the default branch: now, after each push that the repository's host reports to `webhook_url`, and every `interval_hours`. The repository is read with the caller's linked account. Requires permission to manage the organization's templates.",
        example: { url: "https://github.com/acme/app", interval_hours: 24 },
        outlivesGrant: true,
        scope: "template:create",
      }),
    })
    .post(
      "/:prebuild/build",
      async ({ caller, params, set }) => {
        await buildRepositoryPrebuild(ctx, caller, params.prebuild);
        set.status = 204;
      },
      {
        ...changeOptions,
        detail: operation({
          tags,
          operationId: "startRepositoryPrebuild",
          access: "users",
          summary: "Start a repository prebuild",
          description:
            "Starts building the image and returns immediately. Reuses the existing image if the newest commit has one.",
          scope: "template:update",
        }),
      },
    )
    .delete(
      "/:prebuild",
      async ({ caller, params, set }) => {
        await removeRepositoryPrebuild(ctx, caller, params.prebuild);
        set.status = 204;
      },
      {
        ...changeOptions,
        detail: operation({
          tags,
          operationId: "deleteRepositoryPrebuild",
          access: "users",
          summary: "Delete a repository prebuild",
          description:
            "Stops building images in advance. Existing images are kept until the total size of all images exceeds the limit.",
          scope: "template:delete",
          outlivesGrant: true,
        }),
      },
    );

/** Called by repository hosts; the signature is the credential. */
export const repositoryPushes = (ctx: ApiContext) =>
  routes({ prefix: "/prebuilds" }).post(
    "/:prebuild/push",
    async ({ params, request, set }) => {
      await receivePush(ctx, params.prebuild, request.headers, () => readCountedBytes(request, MAX_EVENT_BYTES));
      set.status = 204;
    },
    {
      params,
      response: { 204: NoContent, ...fails(404, 413) },
      detail: operation({
        tags,
        operationId: "submitPushEvent",
        access: "anyone",
        security: [],
        summary: "Submit a push event",
        description:
          "For webhooks of GitHub, GitLab, Gitea, Forgejo and Bitbucket, with the prebuild's secret. The server reads the repository again and doesn't trust the event itself. Returns 404 for an unknown prebuild or a wrong secret.",
        reads: "stream",
        limit: MAX_EVENT_BYTES,
        accepts: ["application/json", "application/x-www-form-urlencoded"],
      }),
    },
  );
