// `PATCH me/app-status`: lets an app in the workspace, such as an assistant, report its progress (facts/platform 3.6, rules AP-1 to AP-4).
import { invalidField } from "#base/errors.ts";
import { reportAppStatus } from "#domain/agents/app-status.ts";
import { PatchAppStatus, STATUS_MESSAGE } from "#schema/workspaces/app.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, Generic } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const STORED: Generic = { message: "Status stored." };

export const agentAppStatus = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .patch(
      "/me/app-status",
      async ({ caller, body }) => {
        const { app_slug, state, message = "", uri = "", icon = "", needs_user_attention = false } = body;
        if (Buffer.byteLength(message) > STATUS_MESSAGE) throw invalidField("message", "must have at most 160 bytes");
        await reportAppStatus(ctx, caller, { app_slug, state, message, uri, icon, needs_user_attention });
        return STORED;
      },
      {
        agent: true,
        body: PatchAppStatus,
        response: { 200: Generic, ...fails(400, 401, 413, 503) },
        detail: operation({
          tags: ["Agents"],
          operationId: "reportAppStatus",
          access: "agent",
          summary: "Report the status of an app",
          description:
            "Adds a status to the app's `statuses`, newest first. The workspace's newest status is its `latest_app_status`. The newest 50 statuses of each app are kept.",
          example: { app_slug: "web", state: "working", message: "Reads the code", uri: "https://example.com" },
          placement: "token",
        }),
      },
    );
