// Routes that recreate or delete a devcontainer of a workspace (facts/platform 3.7 and 5.3, rules CO-7 to CO-9). They require permission to
// change the workspace; its daemon does the work.
import { t } from "elysia";
import { forbidden } from "#base/errors.ts";
import { canUpdateWorkspace } from "#domain/access.ts";
import { requestContainers } from "#domain/agents/containers.ts";
import { loadUsableAgent, toWorkspace } from "#domain/agents/find.ts";
import type { ApiContext } from "../context.ts";
import { callers, type UserCaller } from "../http/caller.ts";
import { reserveAnswer } from "../http/dial-agent.ts";
import { operation } from "../http/operation.ts";
import { fails, Generic, NoContent } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const params = t.Object({
  workspaceagent: t.String({ format: "uuid", description: "The ID of the agent." }),
  devcontainer: t.String({ format: "uuid", description: "The ID of the devcontainer, as listed." }),
});

export const agentDevcontainers = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .post(
      "/:workspaceagent/containers/devcontainers/:devcontainer/recreate",
      async ({ caller, params, request, status }) => {
        const agent_id = await findChangeableAgent(ctx, params.workspaceagent, caller);
        const rest = `/devcontainers/${params.devcontainer.toLowerCase()}/recreate`;
        const reserve = reserveAnswer(ctx, request, caller.user_id);
        await requestContainers(ctx, agent_id, { method: "POST", rest, reserve });
        return status(202, { message: "The devcontainer is being recreated." });
      },
      {
        user: true,
        params,
        response: { 202: Generic, ...fails(400, 401, 403, 404, 408, 409, 500, 503) },
        detail: operation({
          tags: ["Agents"],
          operationId: "recreateDevcontainer",
          summary: "Recreate a devcontainer",
          description:
            "Starts recreating the container of a devcontainer. The list shows the progress: `starting`, then `running` or `error`. Returns 409 while another operation is in progress, and 403 if the template created it.",
          access: "owner",
          scope: "workspace:ssh",
          placement: "agent",
        }),
      },
    )
    .delete(
      "/:workspaceagent/containers/devcontainers/:devcontainer",
      async ({ caller, params, request, set }) => {
        const agent_id = await findChangeableAgent(ctx, params.workspaceagent, caller);
        const rest = `/devcontainers/${params.devcontainer.toLowerCase()}`;
        const reserve = reserveAnswer(ctx, request, caller.user_id);
        await requestContainers(ctx, agent_id, { method: "DELETE", rest, reserve });
        set.status = 204;
      },
      {
        user: true,
        params,
        response: { 204: NoContent, ...fails(400, 401, 403, 404, 408, 409, 500, 503) },
        detail: operation({
          tags: ["Agents"],
          operationId: "deleteDevcontainer",
          summary: "Delete a devcontainer",
          description:
            "Stops and removes the container of a devcontainer. The devcontainer is not listed again until its file changes or its container is recreated. Returns 409 while another operation is in progress.",
          access: "owner",
          scope: "workspace:ssh",
          placement: "agent",
        }),
      },
    );

/**
 * Returns the agent if the caller may change its workspace. Rejects with 404 for callers without access and with 403 for callers who may
 * only use it.
 */
const findChangeableAgent = async (ctx: ApiContext, id: string, caller: UserCaller): Promise<string> => {
  const agent = await loadUsableAgent(ctx.store, id, caller);
  if (!canUpdateWorkspace(caller, toWorkspace(agent))) throw forbidden();
  return agent.agent_id;
};
