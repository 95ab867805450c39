// One agent's connection: RPC over yamux over a WebSocket. Notifies the agent's actor when it opens, of each heartbeat, and when it closes.
// It is closed when another connection takes over or the agent's build is no longer the latest (rules AG-5 to AG-9).
import { uuid } from "#base/ids.ts";
import { log } from "#base/log.ts";
import type { Latency } from "#db/schema/agents.ts";
import { toDaemonLatency, toNodeLatency } from "#domain/agents/latency.ts";
import { notifySecretsChanges } from "#domain/agents/secrets-change.ts";
import { isWorkspaceShared, renewTokenOnLostAccess } from "#domain/agents/token-renewal.ts";
import { createAgentRules } from "#src/tailnet/index.ts";
import type { Node } from "#src/wire/gen/tailnet_pb.ts";
import { Agent, createRouter, mergeRouters, serveSession, Tailnet } from "#src/wire/index.ts";
import type { ApiContext } from "../../context.ts";
import type { Socket } from "../../http/socket.ts";
import { tailnetService } from "../../tailnet/service.ts";
import { YamuxConnection } from "../yamux-connection.ts";
import { TOKEN_RENEWED, YamuxSocket } from "../yamux-socket.ts";
import { agentService } from "./agent-service.ts";

/** Large, because agents send up to a MiB of lines in a batch, and short lines have six fields each. */
const MAX_LOG_FIELDS = 320_000;

export type AgentConnectionOptions = {
  agent_id: string;
  token_generation: number;
  /** The ID of the process, sent only by Slipway's own daemon. */
  daemon_id: string | undefined;
  /** The `major.minor` that the agent requested. */
  api_version: string;
  /** False for passive users of the token, such as log shippers, which do not affect the agent's status. */
  actsForAgent: boolean;
  /** True for Slipway's own daemon, which also opens a tunnel. */
  has_tunnel: boolean;
  /** The address at which the agent reaches this server. */
  server: URL;
};

export class AgentConnection extends YamuxConnection {
  readonly #ctx: ApiContext;
  readonly #options: AgentConnectionOptions;
  readonly #id = uuid();
  readonly #closed = new AbortController();
  /** True once the agent's actor has announced that this connection is the agent's current one. */
  #isAnnounced = false;
  /** Latency to the relays as reported by the agent. Stored with each heartbeat. */
  #reportedLatency: Latency | undefined;
  /** Stored instead if Slipway's own daemon reports none: the round-trip time of a ping. */
  #measuredLatency: Latency | undefined;

  constructor(ctx: ApiContext, options: AgentConnectionOptions) {
    super();
    this.#ctx = ctx;
    this.#options = options;
  }

  open(socket: Socket): void {
    const { clock, topics, dialer } = this.#ctx;
    const { agent_id, token_generation, actsForAgent, has_tunnel } = this.#options;
    const daemon = actsForAgent && has_tunnel ? dialer.expect(agent_id, this.#options.daemon_id) : undefined;
    const onHeartbeat = (round_trip_ms: number): void => {
      daemon?.measured(round_trip_ms);
      if (daemon) this.#measuredLatency = toDaemonLatency(round_trip_ms);
      this.#notifyActor("heartbeat");
    };
    const yamux = new YamuxSocket(this.#ctx, socket, { agent_id, token_generation, role: "server", onHeartbeat });
    this.yamux = yamux;
    yamux.onEnd(topics.subscribe("agent_token_renewed", agent_id, () => yamux.goAway(TOKEN_RENEWED)));
    if (daemon) yamux.onEnd(() => daemon.gone());
    if (actsForAgent) {
      const onTakenOver = ({ connection_id }: { connection_id: string }): void => {
        // Announcements before this connection's own are about earlier connections. They arrive late because they are stored first.
        if (connection_id === this.#id) this.#isAnnounced = true;
        else if (this.#isAnnounced) yamux.goAway("a newer connection of this agent has taken over");
      };
      yamux.onEnd(topics.subscribe("agent_connection", agent_id, onTakenOver));
    }
    const onNodeChanged = (node: Node): void => {
      const isFirst = this.#reportedLatency === undefined;
      this.#reportedLatency = toNodeLatency(node);
      // Pings now so that the first latency is stored immediately, as it is for Slipway's own daemon.
      if (isFirst && this.#reportedLatency) void yamux.session.ping();
    };
    const peer = {
      id: agent_id,
      rules: createAgentRules(agent_id),
      changed: onNodeChanged,
      memoryHolder: socket.holder,
    };
    const router = mergeRouters(
      createRouter(Agent, agentService(this.#ctx, this.#options), { batchCreateLogs: MAX_LOG_FIELDS }),
      createRouter(Tailnet, tailnetService(this.#ctx, { peer, holder: `self:${agent_id}` })),
    );
    const onError = (method: string, error: unknown): void =>
      log("agents").error("{method} of agent {agent_id} failed: {error}", { method, agent_id, error });
    // Pings now so that the first latency is stored immediately and not with the first heartbeat.
    if (daemon) void yamux.session.ping();
    // No call is answered until the agent is stored as connected.
    this.#begin(yamux)
      .then(() => serveSession(yamux.session, router, { clock, onError }))
      .catch((error) => {
        log("agents").warn("cannot record that agent {agent_id} has connected: {error}", { agent_id, error });
        yamux.closeForRetry();
      });
  }

  close(_socket: Socket, code: number, reason: string): void {
    this.yamux?.end(code, reason);
    this.#closed.abort();
    this.#notifyActor("disconnected");
  }

  async #begin(yamux: YamuxSocket): Promise<void> {
    const { agent_id, api_version, daemon_id, actsForAgent, has_tunnel } = this.#options;
    // Before the agent receives any secrets.
    if (actsForAgent && has_tunnel) await notifySecretsChanges(this.#ctx, agent_id, this.#closed.signal);
    if (actsForAgent) {
      // A program that claims to be Slipway's daemon but sends no daemon ID counts as another process.
      const daemon = has_tunnel
        ? { daemon_id: daemon_id ?? "", is_shared: await isWorkspaceShared(this.#ctx.store, agent_id) }
        : {};
      await this.#ctx.agents.ask(agent_id, "connected", { ...this.#toReport(), api_version, ...daemon });
    }
    // A new token depends on what was recorded just now.
    if (actsForAgent && has_tunnel) await renewTokenOnLostAccess(this.#ctx, agent_id, this.#closed.signal);
    await yamux.checkSignedIn();
  }

  #toReport(): { connection_id: string; latency: Latency } {
    return { connection_id: this.#id, latency: this.#reportedLatency ?? this.#measuredLatency ?? {} };
  }

  #notifyActor(message: "heartbeat" | "disconnected"): void {
    if (!this.#options.actsForAgent) return;
    const { agent_id } = this.#options;
    this.#ctx.agents.ask(agent_id, message, this.#toReport()).catch((error) => {
      // The status still follows from the last heartbeat (facts/platform 2.3).
      log("agents").debug("cannot record {message} of agent {agent_id}: {error}", { message, agent_id, error });
    });
  }
}
