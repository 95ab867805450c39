// Connects to agents. Slipway's own daemon keeps a tunnel to the server open (docs/spec/design.md 5), and a newer tunnel replaces an older
// one. Other agents are reached through the private network. Dialing an unavailable agent fails with its status (rules TN-2, TN-4, TN-6,
// TN-10).
import { agentStatus } from "#actors/agent/status.ts";
import type { Clock } from "#base/clock.ts";
import { AppError, conflict, notFound } from "#base/errors.ts";
import { findAgent } from "#db/agents/agents.ts";
import type { Store } from "#db/engine/store.ts";
import {
  type AgentDialer,
  type DialOptions,
  type Duplex,
  encodeTarget,
  Lookahead,
  readOutcome,
  Wakeup,
  WireError,
  wrapTls,
  type YamuxSession,
} from "#src/wire/index.ts";
import { NetworkDialer, type NetworkDialerDeps } from "./network-dialer.ts";

/** Timeout for the agent to report whether the target is open. Longer than the agent's own connect timeout. */
const RESPONSE_TIMEOUT_MS = 15_000;
/** How long an agent is contested after a second daemon tried to connect. A rejected daemon retries within ten seconds. */
const CONTESTED_MS = 60_000;
/** A connected agent opens its tunnel within this time, or it has none. */
const TUNNEL_TIMEOUT_MS = 5_000;

/** Callbacks for the connection of one of Slipway's own daemons. */
export type ConnectedDaemon = {
  /** Called with a measured round-trip time. */
  measured(round_trip_ms: number): void;
  gone(): void;
};

type DaemonEntry = { readonly daemon_id: string | undefined; round_trip_ms: number | undefined };
type Tunnel = { session: YamuxSession; replaced: () => void };

type Deps = { readonly store: Store } & NetworkDialerDeps;

export class AgentsDialer implements AgentDialer {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #tunnels = new Map<string, Tunnel>();
  /** Connections of Slipway's own daemons, by agent. */
  readonly #daemons = new Map<string, Set<DaemonEntry>>();
  /** When a second daemon last tried to connect as this agent, by the monotonic clock. */
  readonly #contested = new Map<string, number>();
  readonly #arrivals = new Map<string, Wakeup>();

  /** Dials agents that use only the private network. */
  readonly network: NetworkDialer;

  constructor(deps: Deps) {
    this.#store = deps.store;
    this.#clock = deps.clock;
    this.network = new NetworkDialer(deps);
    // Slipway's own daemon joins the network before its tunnel is open, so for it only the tunnel ends the wait.
    deps.tailnet.coordinator.listen((id) => this.#isNetworkOnly(id) && this.#arrivals.get(id)?.wake());
  }

  /**
   * Registers an open tunnel of an agent; `replaced` is called when another one takes over. Returns a function to call when it has ended.
   */
  join(agent_id: string, session: YamuxSession, replaced: () => void): () => void {
    const before = this.#tunnels.get(agent_id);
    const tunnel = { session, replaced };
    this.#tunnels.set(agent_id, tunnel);
    before?.replaced();
    this.#arrivals.get(agent_id)?.wake();
    return () => {
      if (this.#tunnels.get(agent_id) === tunnel) this.#tunnels.delete(agent_id);
    };
  }

  /** Returns the agent's current tunnel; undefined if it has none. */
  getTunnel(agent_id: string): YamuxSession | undefined {
    return this.#tunnels.get(agent_id)?.session;
  }

  /** Closes the agent's current tunnel if it is another one. */
  closeOther(agent_id: string, session: YamuxSession | undefined): void {
    const current = this.#tunnels.get(agent_id);
    if (current === undefined || current.session === session) return;
    this.#tunnels.delete(agent_id);
    current.replaced();
  }

  /** Returns the number of agents with a tunnel. */
  get size(): number {
    return this.#tunnels.size;
  }

  /**
   * Rejects with 409 while another process of Slipway's daemon is connected as this agent, so that a copied token cannot take over the
   * agent. The connected process can replace its own connection, and others can connect after it has disconnected.
   */
  admit(agent_id: string, daemon_id: string | undefined): void {
    const others = [...(this.#daemons.get(agent_id) ?? [])].filter((one) => one.daemon_id !== undefined);
    if (others.every((one) => one.daemon_id === daemon_id)) return;
    this.#contested.set(agent_id, this.#clock.monotonic());
    throw conflict("Another daemon is connected as this agent.");
  }

  /** Returns whether a second daemon keeps trying to connect as this agent, so the connected one may be the wrong one. */
  isContested(agent_id: string): boolean {
    const triedAt = this.#contested.get(agent_id);
    return triedAt !== undefined && this.#clock.monotonic() - triedAt < CONTESTED_MS;
  }

  /** Registers a daemon of Slipway that has connected and will open its tunnel. */
  expect(agent_id: string, daemon_id?: string): ConnectedDaemon {
    const daemon: DaemonEntry = { daemon_id, round_trip_ms: undefined };
    const daemons = this.#daemons.get(agent_id) ?? new Set();
    this.#daemons.set(agent_id, daemons.add(daemon));
    return {
      measured: (ms) => {
        daemon.round_trip_ms = ms;
      },
      gone: () => {
        daemons.delete(daemon);
        if (daemons.size > 0 || this.#daemons.get(agent_id) !== daemons) return;
        this.#daemons.delete(agent_id);
        if (!this.isContested(agent_id)) this.#contested.delete(agent_id);
      },
    };
  }

  /** Returns the last measured round-trip time to the agent's daemon in milliseconds; undefined if unknown. */
  roundTrip(agent_id: string): number | undefined {
    return [...(this.#daemons.get(agent_id) ?? [])].at(-1)?.round_trip_ms;
  }

  isDaemon(agent_id: string): boolean {
    return this.#tunnels.has(agent_id) || this.#daemons.has(agent_id);
  }

  async dial(agent_id: string, port: number, signal?: AbortSignal, { tls }: DialOptions = {}): Promise<Duplex> {
    if (!Number.isInteger(port) || port < 1 || port > 65_535) throw new WireError("refused", "There is no such port.");
    const session = this.#tunnels.get(agent_id)?.session ?? (await this.#awaitTunnel(agent_id, signal));
    if (session) return await this.#openStream(session, port, tls, signal);
    const stream = await this.network.dial(agent_id, port, signal);
    return tls ? await wrapTls(stream, signal) : stream;
  }

  async #openStream(session: YamuxSession, port: number, tls?: boolean, signal?: AbortSignal): Promise<Duplex> {
    const raw = await session.open();
    const onAbort = (): void => raw.reset("The caller has gone.");
    const stream = new Lookahead(raw);
    let isLate = false;
    const late = this.#clock.after(RESPONSE_TIMEOUT_MS, () => {
      isLate = true;
      raw.reset("The agent is not responding.");
    });
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      if (signal?.aborted) onAbort();
      await stream.write(encodeTarget(port, tls));
      await readOutcome(stream);
      return stream;
    } catch (error) {
      raw.reset();
      throw isLate ? new WireError("timeout", "The agent is not responding.") : error;
    } finally {
      late.cancel();
      signal?.removeEventListener("abort", onAbort);
    }
  }

  /** Waits for the tunnel of a connected daemon; undefined when the agent is in the network without one. */
  async #awaitTunnel(agent_id: string, signal: AbortSignal | undefined): Promise<YamuxSession | undefined> {
    const agent = await this.#store.get(findAgent({ id: agent_id }));
    if (!agent) throw notFound();
    const status = agentStatus(agent, this.#clock.now());
    if (status === "connected" && !this.#isNetworkOnly(agent_id)) await this.#awaitArrival(agent_id, signal);
    const tunnel = this.#tunnels.get(agent_id);
    if (tunnel) return tunnel.session;
    if (status !== "connected") throw notConnected(status);
    if (this.#isNetworkOnly(agent_id)) return undefined;
    throw new AppError(
      "invalid",
      'The agent cannot be reached: its state is "connected", but it has no tunnel to this server.',
    );
  }

  /** Returns whether the agent is in the network and not one of Slipway's daemons, which register before they join. */
  #isNetworkOnly(agent_id: string): boolean {
    return !this.#daemons.has(agent_id) && this.network.has(agent_id);
  }

  /** Resolves when the agent has a tunnel or has joined the network, after a timeout of a few seconds, or when the signal aborts. */
  #awaitArrival(agent_id: string, signal: AbortSignal | undefined): Promise<void> {
    const arrival = this.#arrivals.get(agent_id) ?? new Wakeup();
    this.#arrivals.set(agent_id, arrival);
    return new Promise((resolve) => {
      const finish = (): void => {
        timer.cancel();
        signal?.removeEventListener("abort", finish);
        this.#arrivals.delete(agent_id);
        resolve();
      };
      const timer = this.#clock.after(TUNNEL_TIMEOUT_MS, () => arrival.wake());
      signal?.addEventListener("abort", finish, { once: true });
      void arrival.wait().then(finish);
    });
  }
}

/** Returns a 400: the request needs the agent, which is not connected (facts/platform 3.7). */
const notConnected = (status: string): AppError =>
  new AppError("invalid", `The agent is not connected: its state is "${status}".`);
