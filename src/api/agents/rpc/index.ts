// `GET me/rpc`: the RPC connection of an agent (facts/wire 1.1).
import { t } from "elysia";
import { invalid } from "#base/errors.ts";
import { readDaemonId } from "#schema/agents/daemon-id.ts";
import type { ApiContext } from "../../context.ts";
import { callers } from "../../http/caller.ts";
import { toAgentsOwner } from "../../http/holders.ts";
import { operation } from "../../http/operation.ts";
import { fails, Upgraded } from "../../http/responses.ts";
import { routes } from "../../http/routes.ts";
import { AgentConnection } from "./connection.ts";

/** An agent has two connections, and briefly more while it reconnects. */
const MAX_CONNECTIONS = 16;
/** Maximum connections of log shippers and other programs that use the agent's token. */
const MAX_PASSIVE = 8;

export const agentRpc = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/me/rpc",
      ({ caller, query, request }) => {
        const actsForAgent = (query.role ?? "agent") === "agent";
        const daemon_id = readDaemonId(request.headers);
        if (actsForAgent) ctx.dialer.admit(caller.agent_id, daemon_id);
        const connection = new AgentConnection(ctx, {
          agent_id: caller.agent_id,
          token_generation: caller.token_generation,
          daemon_id,
          api_version: checkVersion(query.version ?? "2.0"),
          actsForAgent,
          has_tunnel: !caller.compat,
          server: getAgentAccessUrl(ctx, request),
        });
        const limits = actsForAgent
          ? { who: caller.agent_id, agent: true, maxOwn: MAX_CONNECTIONS }
          : { who: `${caller.agent_id} passive`, maxOwn: MAX_PASSIVE };
        return ctx.sockets.upgrade(request, connection, { ...limits, owner: toAgentsOwner(caller) });
      },
      {
        agent: true,
        query: t.Object({
          version: t.Optional(
            t.String({ description: "The protocol version as `major.minor`; default 2.0. Any 2.x is supported." }),
          ),
          role: t.Optional(
            t.String({
              description:
                "The role of the connection. `agent` (default) acts for the agent. Any other role, such as that of log shippers, is passive; at most eight passive connections can be open.",
            }),
          ),
        }),
        response: { 101: Upgraded, ...fails(400, 401, 409, 503) },
        detail: operation({
          tags: ["Agents"],
          operationId: "connectAgent",
          access: "agent",
          summary: "Connect an agent",
          description:
            "A WebSocket of binary messages that carry yamux streams with DRPC and protobuf. A new connection of the same agent replaces the previous one, unless that is of another process of Slipway's own daemon, which names itself in the header `Slipway-Daemon-Id`: then the new one gets 409. A newer build closes it with 1001.",
          placement: "token",
        }),
      },
    );

/** Returns the address at which the agent reaches this server. Containers may use a different hostname than people do. */
const getAgentAccessUrl = ({ accessUrl }: ApiContext, request: Request): URL => {
  const host = request.headers.get("host");
  const isOther = host !== null && host !== accessUrl.host && URL.canParse(`http://${host}`);
  return isOther ? new URL(`${new URL(request.url).protocol}//${host}`) : accessUrl;
};

/** Returns the version. Rejects any major version but 2 with 400; upstream agents compare the message. */
const checkVersion = (version: string): string => {
  if (/^2\.\d{1,4}$/.test(version)) return version;
  throw invalid("Unknown or unsupported API version", [{ field: "version", detail: "must be 2.x" }]);
};
