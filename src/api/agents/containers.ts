// `GET {agent}/containers` and `containers/watch`: the containers that run in a workspace, as reported by its daemon (facts/platform 5.3,
// rules CO-1 to CO-6). Listing them is not activity and does not extend the deadline.
import { t } from "elysia";
import { invalidField } from "#base/errors.ts";
import { canUseWorkspace } from "#domain/access.ts";
import { presentListing, requestContainers } from "#domain/agents/containers.ts";
import { loadUsableAgent } from "#domain/agents/find.ts";
import { makeWorkspaceAccess } from "#domain/live-access.ts";
import { ContainerListing } from "#schema/workspaces/container.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { reserveAnswer } from "../http/dial-agent.ts";
import { operation } from "../http/operation.ts";
import { documentAs } from "../http/query.ts";
import { fails, Upgraded } from "../http/responses.ts";
import { closeWhenAccessLost } from "../http/revocation.ts";
import { routes } from "../http/routes.ts";
import { ContainerWatch } from "./containers-watch.ts";

const MAX_LABELS = 100;
const params = t.Object({ workspaceagent: t.String({ format: "uuid", description: "The ID of the agent." }) });

export const agentContainers = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/:workspaceagent/containers",
      async ({ caller, params, request }) => {
        const labels = parseLabels(request, caller.compat);
        const { agent_id } = await loadUsableAgent(ctx.store, params.workspaceagent, caller);
        const reserve = reserveAnswer(ctx, request, caller.user_id);
        const listing = await requestContainers(ctx, agent_id, { method: "GET", rest: labels, reserve });
        return presentListing(listing, caller.compat);
      },
      {
        user: true,
        params,
        query: t.Object({
          label: documentAs(
            { type: "array", items: { type: "string" }, required: true, example: "app=web" },
            t.Union([t.String(), t.Array(t.String())], {
              description:
                "A label as `key=value`. Repeat it to require several labels. An empty value matches any value of the label. Optional for clients that sign in under the upstream names.",
            }),
          ),
        }),
        response: { 200: ContainerListing, ...fails(400, 401, 403, 404, 408, 409, 500, 503) },
        detail: operation({
          tags: ["Agents"],
          operationId: "listContainers",
          summary: "List containers",
          description:
            "Returns the containers of the workspace's container engine, and the devcontainers in the agent's folder; empty if the workspace has no engine. Labels filter only the containers. Returns 400 with the agent's state if the agent is not connected.",
          access: "owner",
          scope: "workspace:read",
          placement: "agent",
        }),
      },
    )
    .get(
      "/:workspaceagent/containers/watch",
      async ({ caller, params, request }) => {
        const { agent_id, workspace_id } = await loadUsableAgent(ctx.store, params.workspaceagent, caller);
        const watch = await ContainerWatch.begin(ctx, agent_id, caller);
        const access = makeWorkspaceAccess(ctx, workspace_id, canUseWorkspace);
        try {
          return ctx.sockets.upgrade(request, closeWhenAccessLost(ctx, caller, access, watch), { who: caller.user_id });
        } catch (error) {
          watch.close();
          throw error;
        }
      },
      {
        user: true,
        params,
        response: { 101: Upgraded, ...fails(400, 401, 403, 404, 408, 409, 500, 503) },
        detail: operation({
          tags: ["Agents"],
          operationId: "watchContainers",
          summary: "Watch containers",
          description:
            "A WebSocket of text messages. Each message is the complete container list, sent immediately and after each change, which is checked every 10 s. Closes with 1011 and the reason when the agent disconnects.",
          sends: ContainerListing,
          access: "owner",
          scope: "workspace:read",
          placement: "agent",
        }),
      },
    );

/**
 * Returns the label filter for the daemon. Rejects with 400 for an entry that is not `key=value`, and, for native callers, a request
 * without labels.
 */
const parseLabels = (request: Request, compat: boolean): string => {
  // Passed on unsplit, because label values may contain commas.
  const labels = new URL(request.url).searchParams.getAll("label");
  if (labels.length === 0 && !compat) throw invalidField("label", "is required");
  if (labels.length > MAX_LABELS) throw invalidField("label", `may be given ${MAX_LABELS} times`);
  if (labels.some((label) => label.indexOf("=") < 1)) throw invalidField("label", "must be key=value");
  return labels.length === 0
    ? ""
    : `?${new URLSearchParams(labels.map((label): [string, string] => ["label", label]))}`;
};
