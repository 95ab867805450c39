// How the server reaches what listens in a workspace: one interface, whatever lies in between (docs/spec/design.md 5). Everything above it
// (HTTP API of the daemon, terminal, app proxy, tools of chats) is the same for every kind of agent.
import type { Duplex } from "./duplex.ts";

/** Ports below 9 are the agent's own (facts/wire 4.1); from 9 on they are TCP ports on the workspace's loopback. */
export const AGENT_PORT = {
  ssh: 1,
  terminal: 2,
  speed_test: 3,
  http: 4,
  first_tcp: 9,
  /** SSH again, for clients that know its usual port only. */
  system_ssh: 22,
  last_tcp: 65_535,
} as const;

/** `tls`: the agent speaks TLS with the port and takes any certificate; the stream carries what is inside. */
export type DialOptions = { readonly tls?: boolean };

export interface AgentDialer {
  /**
   * A stream to this port of the agent. Throws AppError `invalid` when the agent is not connected (the message names its state),
   * WireError `refused` when nothing listens there or the port is not offered, `timeout` when the agent does not answer, and
   * `closed` when it goes away in the meantime or `signal` fires.
   */
  dial(agent_id: string, port: number, signal?: AbortSignal, options?: DialOptions): Promise<Duplex>;
  /** True when the agent is a daemon of ours that can be dialed, now or once its tunnel is up: it does what the server asks. */
  isDaemon(agent_id: string): boolean;
}
