// The interface with which the server connects to ports in a workspace (docs/spec/design.md 5). Each kind of agent has an implementation,
// so that its users (HTTP API of the daemon, terminal, app proxy, chat tools) are the same for all kinds.
import type { Duplex } from "./duplex.ts";

/** Ports below 9 are services of the agent (facts/wire 4.1). Ports from 9 on are TCP ports on the workspace's loopback interface. */
export const AGENT_PORT = {
  ssh: 1,
  terminal: 2,
  speed_test: 3,
  http: 4,
  first_tcp: 9,
  /** SSH, for clients that know only its default port. */
  system_ssh: 22,
  last_tcp: 65_535,
} as const;

/** `tls`: the agent uses TLS on the port and accepts any certificate; the stream carries the plaintext. */
export type DialOptions = { readonly tls?: boolean };

export interface AgentDialer {
  /**
   * Opens a stream to this port of the agent. Throws AppError `invalid` if the agent is not connected (the message names its state),
   * WireError `refused` if nothing listens there or the port is not offered, `timeout` if the agent does not answer, and `closed` if it
   * disconnects during the call or `signal` fires.
   */
  dial(agent_id: string, port: number, signal?: AbortSignal, options?: DialOptions): Promise<Duplex>;
  /** Returns whether the agent is Slipway's own daemon and can be dialed, now or once its tunnel is connected. */
  isDaemon(agent_id: string): boolean;
}
