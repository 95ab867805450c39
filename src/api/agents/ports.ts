// `GET {agent}/listening-ports`: the ports that are open in the workspace, as reported by its daemon (facts/platform 5.7, rules PT-1,
// PT-4).
import { Value } from "@sinclair/typebox/value";
import { t } from "elysia";
import { AppError } from "#base/errors.ts";
import { loadUsableAgent } from "#domain/agents/find.ts";
import { ListeningPorts } from "#schema/workspaces/listening-port.ts";
import type { AnswerReserve } from "#src/wire/index.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { reserveAnswer } from "../http/dial-agent.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const TIMEOUT_MS = 30_000;
const MAX_ANSWER_BYTES = 1024 * 1024;

export const agentPorts = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/:workspaceagent/listening-ports",
      async ({ caller, params, request }) => {
        const { agent_id } = await loadUsableAgent(ctx.store, params.workspaceagent, caller);
        return requestListeningPorts(ctx, agent_id, reserveAnswer(ctx, request, caller.user_id));
      },
      {
        user: true,
        params: t.Object({ workspaceagent: t.String({ format: "uuid", description: "The ID of the agent." }) }),
        response: { 200: ListeningPorts, ...fails(400, 401, 404, 408, 409, 500, 503) },
        detail: operation({
          tags: ["Agents"],
          operationId: "listListeningPorts",
          summary: "List listening ports",
          description:
            "Returns the TCP ports on which programs of the workspace's user listen. Excludes the ports of the agent's apps, ports below 9, and ports of common services. Returns 400 with the agent's state if the agent is not connected.",
          access: "owner",
          scope: "workspace:read",
          placement: "agent",
        }),
      },
    );

const requestListeningPorts = async (
  ctx: ApiContext,
  agent_id: string,
  reserve: AnswerReserve,
): Promise<ListeningPorts> => {
  const timeout = new AbortController();
  const timer = ctx.clock.after(TIMEOUT_MS, () => timeout.abort());
  try {
    const request = { method: "GET", path: "/api/v0/listening-ports", signal: timeout.signal };
    const response = await ctx.agentHttp.request(agent_id, request);
    response.reserve = reserve;
    const answer = await response.json(MAX_ANSWER_BYTES);
    if (response.status === 200 && Value.Check(ListeningPorts, answer))
      return Value.Clean(ListeningPorts, answer) as ListeningPorts;
    throw new AppError("overloaded", "The agent could not list its ports.", {
      detail: `It responded with status ${response.status}.`,
    });
  } catch (error) {
    if (!timeout.signal.aborted) throw error;
    throw new AppError("timeout", "The agent did not list its ports within 30 s.");
  } finally {
    timer.cancel();
  }
};
