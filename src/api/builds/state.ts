// The state that a build leaves for the next one (process IDs, containers): read it, and replace it after a manual repair. Only for
// template administrators, because it can contain secrets (rules BD-5 and BD-6).
import { t } from "elysia";
import { forbidden, invalidField, notFound } from "#base/errors.ts";
import { openState, sealState } from "#db/workspaces/build-state.ts";
import { findBuild } from "#db/workspaces/builds.ts";
import { findJob } from "#db/workspaces/jobs.ts";
import type { WorkspaceView } from "#db/workspaces/views.ts";
import { canManageTemplates } from "#domain/access.ts";
import { loadBuild } from "#domain/builds/find.ts";
import { checkPushed, MAX_STATE_CHARS, parseState } from "#domain/builds/state-text.ts";
import { requireFullAccess } from "#domain/factors/proof.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers, type UserCaller } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { flagQuery, parseFlag } from "../http/query.ts";
import { fails, NoContent } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const tags = ["Builds"];
const user = true;
const params = t.Object({ workspacebuild: t.String({ format: "uuid", description: "The ID of the build." }) });

export const buildState = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/:workspacebuild/state",
      async ({ caller, params }) => {
        const { build } = await getManagedBuild(ctx, params.workspacebuild, caller);
        const row = await ctx.store.get(findBuild({ id: build.id }));
        const state = row ? openState(ctx.encryption, row.workspace_id, row.state) : null;
        return new Response(state ?? "", { headers: { "content-type": "application/octet-stream" } });
      },
      {
        user,
        params,
        response: {
          200: t.Any({ description: "The raw bytes that the provisioner stored." }),
          ...fails(400, 401, 403, 404),
        },
        detail: operation({
          tags,
          operationId: "getBuildState",
          summary: "Get the state of a build",
          answers: ["application/octet-stream"],
          description:
            "Returns the state that the provisioner stored for the next build. Not for applications and keys with scopes, because it can contain secrets of the workspace's owner.",
          access: "user_admins",
          scope: "all",
          placement: "build",
        }),
      },
    )
    .put(
      "/:workspacebuild/state",
      async ({ caller, params, query, body, status }) => {
        const { build, workspace, job } = await getManagedBuild(ctx, params.workspacebuild, caller);
        const state = parseState(body.state);
        if (state === undefined) throw invalidField("state", "must be base64 of UTF-8 text");
        const isForced = parseFlag(query.force);
        const { provisioner = "" } = (await ctx.store.get(findJob({ id: job.id }))) ?? {};
        const row = await ctx.store.get(findBuild({ id: build.id }));
        if (!row) throw notFound();
        checkPushed(ctx.encryption, { provisioner, text: state, before: row, isForced });
        const target = { workspace_id: workspace.id, provisioner };
        const sealed = sealState(ctx.encryption, target, state || null);
        await ctx.workspaces.ask(workspace.id, "putBuildState", {
          build_id: build.id,
          before: row.state,
          state: sealed,
        });
        return status(204, undefined);
      },
      {
        user,
        params,
        query: t.Object({
          force: flagQuery("Discard resources in the existing Terraform state instead of returning 409."),
        }),
        body: t.Object({
          state: t.String({ maxLength: MAX_STATE_CHARS, description: "The state in Base64; empty for no state." }),
        }),
        response: { 204: NoContent, ...fails(400, 401, 403, 404, 409, 413, 503) },
        detail: operation({
          tags,
          operationId: "replaceBuildState",
          summary: "Replace the state of a build",
          description:
            "Replaces the state that the next build of the workspace uses, for manual repairs. Returns 409 while a build is active. For a Terraform template, it must be a Terraform state (400) with the same lineage and a newer serial, or empty if the existing state has no resources (409). Not for applications and keys with scopes.",
          limit: MAX_STATE_CHARS + 4_096,
          audit: target.writes(target.workspaceBuild),
          example: { state: "" },
          access: "user_admins",
          scope: "all",
          placement: "build",
        }),
      },
    );

const getManagedBuild = async (ctx: ApiContext, id: string, caller: UserCaller): Promise<WorkspaceView> => {
  const view = await loadBuild(ctx, id, caller);
  if (!canManageTemplates(caller, view.workspace.organization_id)) {
    throw forbidden("Only template administrators can see build state.");
  }
  // The state contains secrets of the workspace's owner and determines what the next build removes.
  await requireFullAccess(ctx, caller, "read or replace the state of a build");
  return view;
};
