// Credentials for an external agent, which runs on a machine that the server does not start: the token and the install command. Programs in
// the workspace can read the token anyway (rule TF-17), so a key that can run programs there can also read it here.
import { t } from "elysia";
import { forbidden } from "#base/errors.ts";
import { canUseWorkspace } from "#domain/access.ts";
import { findExternalAgentCredentials } from "#domain/agents/external.ts";
import { findExistingWorkspace } from "#domain/workspaces/find.ts";
import { ExternalAgentCredentials } from "#schema/workspaces/external-agent.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

export const externalAgent = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/:workspace/external-agent/:agent/credentials",
      async ({ caller, params }) => {
        const workspace = await findExistingWorkspace(ctx, params.workspace, caller);
        if (!canUseWorkspace(caller, workspace)) throw forbidden("You may not enter this workspace.");
        return await findExternalAgentCredentials(ctx, workspace.id, params.agent);
      },
      {
        user: true,
        params: t.Object({
          workspace: t.String({ format: "uuid", description: "The ID of the workspace." }),
          agent: t.String({ description: "The name of the agent." }),
        }),
        response: { 200: ExternalAgentCredentials, ...fails(400, 401, 403, 404, 410) },
        detail: operation({
          tags: ["Agents"],
          operationId: "getExternalAgentCredentials",
          summary: "Get the credentials of an external agent",
          description: "For an agent on your own machine, from a template with a `coder_external_agent` resource.",
          access: "owner",
          scope: ["workspace:read", "workspace:ssh"],
          placement: "workspace",
        }),
      },
    );
