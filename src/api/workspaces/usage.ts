// Reports from clients, once a minute, that someone is using a workspace (facts/platform 3.4).
import { invalid, invalidField, notFound } from "#base/errors.ts";
import { isUuid } from "#base/ids.ts";
import { findAgent } from "#db/agents/agents.ts";
import { workspacePath } from "#domain/workspaces/find.ts";
import { USAGE_APPS, WorkspaceUsage } from "#schema/workspaces/workspace.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, NoContent } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { loadActiveWorkspace } from "./active.ts";

export const usage = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .post(
      "/:workspace/usage",
      async ({ params, body, request, status }) => {
        const { id, build_id, user_id, by } = await loadActiveWorkspace(ctx, params.workspace, request);
        const reported = parseUsage(body);
        const agent = reported && (await ctx.store.get(findAgent({ id: reported.agent_id })));
        if (reported && agent?.build_id !== build_id) throw notFound();
        await ctx.workspaces.ask(id, "recordActivity", { reason: "usage", at: ctx.clock.now(), by, ...reported });
        if (reported) {
          const { agent_id, app_name: app } = reported;
          ctx.usage.note({ workspace_id: id, user_id, agent_id, app });
        }
        return status(204, undefined);
      },
      {
        anyone: true,
        params: workspacePath,
        body: WorkspaceUsage,
        response: { 204: NoContent, ...fails(400, 401, 403, 404, 410, 413, 503) },
        detail: operation({
          tags: ["Workspaces"],
          operationId: "reportWorkspaceUsage",
          summary: "Report workspace usage",
          description:
            "Without a body, only updates `last_used_at`. With both fields, it also counts as activity. The workspace's agent can report for its owner.",
          example: {},
          scope: "workspace:update",
          placement: "workspace",
        }),
      },
    );

/** Requires both fields or neither. */
const parseUsage = ({ agent_id, app_name }: WorkspaceUsage): { agent_id: string; app_name: string } | undefined => {
  if (!agent_id && !app_name) return undefined;
  if (!agent_id || !app_name) {
    throw invalid("Validation failed.", [
      { field: agent_id ? "app_name" : "agent_id", detail: "agent_id and app_name must be given together" },
    ]);
  }
  if (!(USAGE_APPS as readonly string[]).includes(app_name)) {
    throw invalidField("app_name", `must be one of ${USAGE_APPS.join(", ")}`);
  }
  if (!isUuid(agent_id)) throw invalidField("agent_id", "must be a UUID");
  return { agent_id: agent_id.toLowerCase(), app_name };
};
