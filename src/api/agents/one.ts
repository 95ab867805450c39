// Route that returns one agent to users who can see its workspace.
import { t } from "elysia";
import { notFound } from "#base/errors.ts";
import { findAgent } from "#db/agents/agents.ts";
import { loadAgent } from "#domain/agents/find.ts";
import { makeAgentView, presentAgentRows } from "#domain/agents/present.ts";
import { WorkspaceAgent } from "#schema/agents/agent.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

export const agentById = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/:workspaceagent",
      async ({ caller, params }) => {
        const { agent_id } = await loadAgent(ctx.store, params.workspaceagent, caller);
        const row = await ctx.store.get(findAgent({ id: agent_id }));
        const [agent] = await presentAgentRows(makeAgentView(ctx, caller), row ? [row] : []);
        if (!agent) throw notFound();
        return agent;
      },
      {
        user: true,
        params: t.Object({ workspaceagent: t.String({ format: "uuid", description: "The ID of the agent." }) }),
        response: { 200: WorkspaceAgent, ...fails(400, 401, 404) },
        detail: operation({
          tags: ["Agents"],
          operationId: "getAgent",
          summary: "Get an agent",
          access: "owner",
          scope: "workspace:read",
          placement: "agent",
        }),
      },
    );
