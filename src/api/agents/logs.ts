// Returns an agent's log lines as JSON, as text, or as a WebSocket that continues with live lines (facts/platform 4).
import { t } from "elysia";
import { canSeeWorkspace } from "#domain/access.ts";
import { loadAgent } from "#domain/agents/find.ts";
import { makeWorkspaceAccess } from "#domain/live-access.ts";
import { AgentLog } from "#schema/agents/agent-log.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { closeWhenAccessLost } from "../http/revocation.ts";
import { routes } from "../http/routes.ts";
import { LogFollower } from "./log-follower.ts";
import { LogFollowers } from "./log-followers.ts";
import { LogQuery, parseLogRequest } from "./log-query.ts";
import { readLogs } from "./log-read.ts";
import { makeRemovedError } from "./me.ts";

const tags = ["Agents"];
const path = t.Object({ workspaceagent: t.String({ format: "uuid", description: "The ID of the agent." }) });

export const agentLogs = (ctx: ApiContext) => {
  const followers = new LogFollowers(ctx);
  return routes()
    .use(callers)
    .get(
      "/:workspaceagent/logs",
      async ({ caller, params, query, request }) => {
        const requested = parseLogRequest(query);
        const agent = await loadAgent(ctx.store, params.workspaceagent, caller);
        if (!requested.follow) return await readLogs(followers.pages, agent, requested, caller.compat);
        const access = makeWorkspaceAccess(ctx, agent.workspace_id, canSeeWorkspace);
        const follower = closeWhenAccessLost(ctx, caller, access, new LogFollower(ctx, followers, agent, requested));
        return ctx.sockets.upgrade(request, follower, { who: caller.user_id, compressed: requested.compress });
      },
      {
        user: true,
        params: path,
        query: LogQuery,
        response: { 200: t.Array(AgentLog), ...fails(400, 401, 404, 503) },
        detail: operation({
          tags,
          operationId: "listAgentLogs",
          summary: "List an agent's log lines",
          description:
            "Returns log lines by ascending ID, at most 50,000 lines or 16 MiB of output; continue with `after`. With `follow=true`, this is a WebSocket of text messages, each a JSON array of lines: first the stored lines after `after` (possibly `[]`), then new lines as they are committed. It closes with 1000 when the agent is no longer in use, and with 1013 if the reader falls behind; resume with `after`. `format=text` returns plain text with RFC 3339 times.",
          answers: ["application/json", "text/plain"],
          sends: t.Array(AgentLog),
          access: "owner",
          scope: "workspace:read",
          placement: "agent",
        }),
      },
    )
    .get(
      "/:workspaceagent/startup-logs",
      () => {
        throw makeRemovedError("{workspaceagent}/logs");
      },
      {
        user: true,
        params: path,
        response: { 200: t.Void(), ...fails(401, 410) },
        detail: operation({
          tags,
          operationId: "listAgentStartupLogs",
          summary: "List startup logs (removed)",
          deprecated: true,
          scope: "workspace:read",
          placement: "agent",
        }),
      },
    );
};
