// Creates API keys for programs that open a workspace: editors and a template's external apps.
import { t } from "elysia";
import { loadUsableAgent } from "#domain/agents/find.ts";
import { createExternalLink } from "#domain/applications/external-link.ts";
import { createWorkspaceKey } from "#domain/users/workspace-key.ts";
import { ExternalLink, WorkspaceKey } from "#schema/users/application.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const user = true;
const agentPath = t.Object({ workspaceagent: t.String({ format: "uuid", description: "The ID of the agent." }) });
const appPath = t.Object({
  workspaceagent: agentPath.properties.workspaceagent,
  app: t.String({ maxLength: 64, description: "The slug of an app of the agent." }),
});

export const agentKeys = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .post(
      "/:workspaceagent/keys",
      async ({ caller, params, status }) => {
        const agent = await loadUsableAgent(ctx.store, params.workspaceagent, caller);
        return status(201, await createWorkspaceKey(ctx, caller, agent, "editor"));
      },
      {
        user,
        params: agentPath,
        response: { 201: WorkspaceKey, ...fails(400, 401, 403, 404, 409) },
        detail: operation({
          tags: ["API keys"],
          operationId: "createWorkspaceKey",
          summary: "Create a workspace key",
          description:
            "Creates a key for a program that opens the workspace, such as an editor. The key can only read, use, start and stop this workspace. It expires after 8 hours, or with the session or token that created it.",
          access: "owner",
          scope: "all",
          placement: "agent",
        }),
      },
    )
    .post(
      "/:workspaceagent/apps/:app/link",
      async ({ caller, params, status }) => {
        const agent = await loadUsableAgent(ctx.store, params.workspaceagent, caller);
        return status(201, await createExternalLink(ctx, caller, agent, params.app));
      },
      {
        user,
        params: appPath,
        response: { 201: ExternalLink, ...fails(400, 401, 403, 404, 409) },
        detail: operation({
          tags: ["Applications"],
          operationId: "createExternalLink",
          summary: "Create a link to an external app",
          description:
            "Returns the app's link with a key for this workspace. Available to the workspace's owner, for apps that the template declares and the schemes in `external_app_schemes`. Ask for confirmation first, because the link's target gets the key.",
          access: "owner_only",
          scope: "all",
          placement: "agent",
        }),
      },
    );
