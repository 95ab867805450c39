// Connects to agents that use only the private network: upstream agents, which open no tunnel to the server. The server is a client of that
// network: it joins when it first dials, has a tunnel with each agent it talks to, and closes it when idle. Rules TN-10 to TN-12.
import type { Events } from "#actors/runtime/events.ts";
import type { Clock, Timer } from "#base/clock.ts";
import { uuid } from "#base/ids.ts";
import { log } from "#base/log.ts";
import { systemRandom } from "#base/random.ts";
import { pause } from "#base/retry.ts";
import type { Topics } from "#base/topics.ts";
import {
  type Coordinator,
  createClientAddress,
  createClientRules,
  createLocalCoordinator,
  formatIp6,
  LocalLink,
  NetworkPeer,
  parseSingleAddress,
  type Relay,
} from "#src/tailnet/index.ts";
import { type Duplex, WireError } from "#src/wire/index.ts";

/** A tunnel without streams for this long is closed. */
const IDLE_TIMEOUT_MS = 60_000;
/** Timeout for an agent's response. */
const RESPONSE_TIMEOUT_MS = 15_000;
/** Maximum concurrent streams to one agent, including those being opened. */
export const MAX_STREAMS = 256;
/** Maximum agents with a tunnel. */
const MAX_AGENTS = 4_096;
const RETRY_INTERVAL_MS = 1_000;

export type NetworkDialerDeps = {
  readonly clock: Clock;
  readonly topics: Topics<Events>;
  readonly tailnet: { readonly coordinator: Coordinator; readonly relay: Relay };
};

/** Use of one agent's tunnel. */
type Use = { streams: number; idle: Timer | undefined; unlisten: () => void };

export class NetworkDialer {
  readonly #deps: NetworkDialerDeps;
  readonly #uses = new Map<string, Use>();
  #peer: NetworkPeer | undefined;
  readonly #address = createClientAddress();

  constructor(deps: NetworkDialerDeps) {
    this.#deps = deps;
  }

  /** Returns the number of agents with a tunnel. */
  get size(): number {
    return this.#uses.size;
  }

  /** Returns whether this is the address under which agents see the server. */
  isOwn(address: string): boolean {
    return parseSingleAddress(`${address}/128`) === parseSingleAddress(`${formatIp6(this.#address)}/128`);
  }

  /** Returns whether the agent has joined the network. */
  has(agent_id: string): boolean {
    return this.#deps.tailnet.coordinator.getNode(agent_id) !== undefined;
  }

  /** Opens a stream to a port of the agent. Throws WireError: `refused`, `timeout`, `too_large`, `closed`. */
  async dial(agent_id: string, port: number, signal?: AbortSignal): Promise<Duplex> {
    const release = this.#countStream(agent_id);
    const timeout = new AbortController();
    const timer = this.#deps.clock.after(RESPONSE_TIMEOUT_MS, () => timeout.abort());
    try {
      this.#peer ??= this.#join();
      const eitherSignal = signal ? AbortSignal.any([signal, timeout.signal]) : timeout.signal;
      const stream = await this.#peer.dial(agent_id, port, eitherSignal);
      void stream.closed.then(release);
      return stream;
    } catch (error) {
      release();
      throw timeout.signal.aborted ? new WireError("timeout", "The agent is not responding.") : error;
    } finally {
      timer.cancel();
    }
  }

  /** Breaks all streams and stops dialing. */
  async close(): Promise<void> {
    for (const agent_id of [...this.#uses.keys()]) this.#release(agent_id);
    await this.#peer?.close();
  }

  /** Counts a stream; returns a function to call once when it has ended. */
  #countStream(agent_id: string): () => void {
    const use = this.#uses.get(agent_id) ?? this.#startUse(agent_id);
    if (use.streams >= MAX_STREAMS) throw new WireError("too_large", "There are too many streams to this agent.");
    use.streams += 1;
    use.idle?.cancel();
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      use.streams -= 1;
      if (use.streams > 0 || this.#uses.get(agent_id) !== use) return;
      use.idle = this.#deps.clock.after(IDLE_TIMEOUT_MS, () => this.#release(agent_id));
    };
  }

  #startUse(agent_id: string): Use {
    if (this.#uses.size >= MAX_AGENTS) throw new WireError("too_large", "There are too many tunnels to agents.");
    // A newer build has taken over: the streams in its agents' tunnels break immediately.
    const unlisten = this.#deps.topics.subscribe("agent_gone", agent_id, () => this.#release(agent_id));
    const use = { streams: 0, idle: undefined, unlisten };
    this.#uses.set(agent_id, use);
    return use;
  }

  #release(agent_id: string): void {
    const use = this.#uses.get(agent_id);
    if (!use) return;
    this.#uses.delete(agent_id);
    use.idle?.cancel();
    use.unlisten();
    void this.#peer?.closeTunnel(agent_id);
  }

  #join(): NetworkPeer {
    const { clock, tailnet } = this.#deps;
    const peer = new NetworkPeer({
      clock,
      random: systemRandom,
      role: "client",
      addresses: [this.#address],
      max_remotes: MAX_AGENTS,
      link: (key, receive) => new LocalLink({ relay: tailnet.relay, key, receive }),
      // The server offers no services to the agents it dials.
      accept: (connection) => connection.reset("This is the server."),
    });
    void this.#keepJoined(peer);
    return peer;
  }

  async #keepJoined(peer: NetworkPeer): Promise<void> {
    const { clock, tailnet } = this.#deps;
    // Access was checked before the dial.
    const options = { id: uuid(), staysHere: true, rules: createClientRules(async () => undefined) };
    const coordinator = createLocalCoordinator(tailnet.coordinator, options);
    for (;;) {
      await peer
        .run(coordinator)
        .catch((error) => log("agents").warn("cannot join the private network: {error}", { error }));
      if (peer.isClosed) return;
      await pause(clock, RETRY_INTERVAL_MS);
    }
  }
}
