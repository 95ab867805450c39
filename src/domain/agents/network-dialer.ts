// Reaching agents that speak the private network only: genuine ones, which open no tunnel to the server. The server is a client of that network
// itself: it joins when it first dials someone, has a tunnel with each agent it talks to, and gives it up when nothing runs in it any more.
// Rules TN-10 to TN-12.
import type { Events } from "#actors/runtime/events.ts";
import type { Clock, Timer } from "#base/clock.ts";
import { uuid } from "#base/ids.ts";
import { log } from "#base/log.ts";
import { systemRandom } from "#base/random.ts";
import { pause } from "#base/retry.ts";
import type { Topics } from "#base/topics.ts";
import {
  addressText,
  type Coordinator,
  clientAddress,
  clientRules,
  LocalLink,
  localCoordinator,
  NetworkPeer,
  type Relay,
  singleAddress,
} from "#src/tailnet/index.ts";
import { type Duplex, WireError } from "#src/wire/index.ts";

/** A tunnel in which nothing has run for so long is given up. */
const IDLE_MS = 60_000;
/** An agent answers within this time, or it does not. */
const ANSWER_MS = 15_000;
/** Streams to one agent at once, those that are being opened with them. */
export const MAX_STREAMS = 256;
/** Agents with a tunnel at once. */
const MAX_AGENTS = 4_096;
const AGAIN_MS = 1_000;

export type NetworkDialerDeps = {
  readonly clock: Clock;
  readonly topics: Topics<Events>;
  readonly tailnet: { readonly coordinator: Coordinator; readonly relay: Relay };
};

/** What runs with one agent. */
type Use = { streams: number; idle: Timer | undefined; unlisten: () => void };

export class NetworkDialer {
  readonly #deps: NetworkDialerDeps;
  readonly #uses = new Map<string, Use>();
  #peer: NetworkPeer | undefined;
  readonly #address = clientAddress();

  constructor(deps: NetworkDialerDeps) {
    this.#deps = deps;
  }

  /** Agents it has a tunnel with. */
  get size(): number {
    return this.#uses.size;
  }

  /** True for the address under which agents see this server. */
  isOwn(address: string): boolean {
    return singleAddress(`${address}/128`) === singleAddress(`${addressText(this.#address)}/128`);
  }

  /** True when the agent has joined the network. */
  has(agent_id: string): boolean {
    return this.#deps.tailnet.coordinator.nodeOf(agent_id) !== undefined;
  }

  /** A stream to this port of the agent. Throws WireError: `refused`, `timeout`, `too_large`, `closed`. */
  async dial(agent_id: string, port: number, signal?: AbortSignal): Promise<Duplex> {
    const release = this.#hold(agent_id);
    const late = new AbortController();
    const timer = this.#deps.clock.after(ANSWER_MS, () => late.abort());
    try {
      this.#peer ??= this.#join();
      const either = signal ? AbortSignal.any([signal, late.signal]) : late.signal;
      const stream = await this.#peer.dial(agent_id, port, either);
      void stream.closed.then(release);
      return stream;
    } catch (error) {
      release();
      throw late.signal.aborted ? new WireError("timeout", "The agent is not responding.") : error;
    } finally {
      timer.cancel();
    }
  }

  /** Everything breaks; nothing is dialled any more. */
  async close(): Promise<void> {
    for (const agent_id of [...this.#uses.keys()]) this.#leave(agent_id);
    await this.#peer?.close();
  }

  /** Counts a stream; what this answers says once that it has ended. */
  #hold(agent_id: string): () => void {
    const use = this.#uses.get(agent_id) ?? this.#begin(agent_id);
    if (use.streams >= MAX_STREAMS) throw new WireError("too_large", "There are too many streams to this agent.");
    use.streams += 1;
    use.idle?.cancel();
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      use.streams -= 1;
      if (use.streams > 0 || this.#uses.get(agent_id) !== use) return;
      use.idle = this.#deps.clock.after(IDLE_MS, () => this.#leave(agent_id));
    };
  }

  #begin(agent_id: string): Use {
    if (this.#uses.size >= MAX_AGENTS) throw new WireError("too_large", "There are too many tunnels to agents.");
    // A build that is not the latest any more: what runs in its agents' tunnels breaks at once.
    const unlisten = this.#deps.topics.subscribe("agent_gone", agent_id, () => this.#leave(agent_id));
    const use = { streams: 0, idle: undefined, unlisten };
    this.#uses.set(agent_id, use);
    return use;
  }

  #leave(agent_id: string): void {
    const use = this.#uses.get(agent_id);
    if (!use) return;
    this.#uses.delete(agent_id);
    use.idle?.cancel();
    use.unlisten();
    void this.#peer?.leave(agent_id);
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
      // The server offers nothing to those it dials.
      accept: (connection) => connection.reset("This is the server."),
    });
    void this.#stayJoined(peer);
    return peer;
  }

  async #stayJoined(peer: NetworkPeer): Promise<void> {
    const { clock, tailnet } = this.#deps;
    // Who may be dialled was decided before anyone dials.
    const options = { id: uuid(), staysHere: true, rules: clientRules(async () => undefined) };
    const coordinator = localCoordinator(tailnet.coordinator, options);
    for (;;) {
      await peer.run(coordinator).catch((error) => log("agents").warn("the network: {error}", { error }));
      if (peer.isClosed) return;
      await pause(clock, AGAIN_MS);
    }
  }
}
