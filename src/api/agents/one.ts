// One agent, for whoever may see its workspace.
import { Elysia, t } from "elysia";
import { notFound } from "#base/errors.ts";
import { findAgent } from "#db/agents.ts";
import { WorkspaceAgent } from "#schema/agent.ts";
import { hasAppHosts } from "../applications/names.ts";
import { callers } from "../caller.ts";
import type { ApiContext } from "../context.ts";
import { fails } from "../responses.ts";
import { latencyOf } from "./latency.ts";
import { agentAt } from "./place.ts";
import { showAgentRows } from "./show.ts";

export const oneAgent = (ctx: ApiContext) =>
  new Elysia().use(callers).get(
    "/:workspaceagent",
    async ({ caller, params }) => {
      const { agent_id } = await agentAt(ctx.store, params.workspaceagent, caller);
      const row = await ctx.store.get(findAgent({ id: agent_id }));
      const [agent] = await showAgentRows(
        ctx.store,
        row ? [row] : [],
        ctx.clock.now(),
        caller.compat,
        hasAppHosts(ctx),
        latencyOf(ctx),
      );
      if (!agent) throw notFound();
      return agent;
    },
    {
      user: true,
      params: t.Object({ workspaceagent: t.String({ format: "uuid", description: "Agent id." }) }),
      response: { 200: WorkspaceAgent, ...fails(400, 401, 404) },
      detail: { tags: ["Agents"], summary: "Get an agent" },
    },
  );
