// Forwards a peer's datagrams to UDP ports of the workspace. Each pair of ports has its own socket, so that responses can be routed back.
// An idle socket is closed after two minutes. [WN-8]
import type { Clock } from "#base/clock.ts";
import type { Datagram } from "#src/tailnet/index.ts";

const MAX_FLOWS = 128;
const IDLE_TIMEOUT_MS = 120_000;
const MIN_PORT = 9;

type Flow = { socket: Promise<Bun.udp.Socket<"buffer">>; usedAt: number };

export class DatagramFlows {
  readonly #clock: Clock;
  readonly #flows = new Map<string, Flow>();
  readonly #sweeper: { cancel(): void };

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#sweeper = clock.every(IDLE_TIMEOUT_MS / 4, () => this.#closeIdle());
  }

  /** Sends a datagram to a port of this machine; responses go to `answer`. */
  send({ sourcePort, targetPort, data }: Datagram, answer: (data: Uint8Array) => void): void {
    if (targetPort < MIN_PORT) return;
    const name = `${sourcePort}:${targetPort}`;
    let flow = this.#flows.get(name);
    if (!flow) {
      if (this.#flows.size >= MAX_FLOWS) return;
      // The kernel reports a port without a listener as a socket error, which would crash the process without an `error` handler.
      const handlers = { data: (_: unknown, reply: Buffer) => answer(reply), error: () => {} };
      const socket = Bun.udpSocket({ hostname: "127.0.0.1", socket: handlers });
      flow = { socket, usedAt: 0 };
      this.#flows.set(name, flow);
      socket.catch(() => this.#flows.delete(name));
    }
    flow.usedAt = this.#clock.monotonic();
    const copy = data.slice();
    flow.socket.then(
      (socket) => void socket.send(copy, targetPort, "127.0.0.1"),
      () => {},
    );
  }

  close(): void {
    this.#sweeper.cancel();
    for (const name of [...this.#flows.keys()]) this.#closeFlow(name);
  }

  #closeIdle(): void {
    const deadlineMs = this.#clock.monotonic() - IDLE_TIMEOUT_MS;
    for (const [name, { usedAt }] of this.#flows) if (usedAt < deadlineMs) this.#closeFlow(name);
  }

  #closeFlow(name: string): void {
    const flow = this.#flows.get(name);
    this.#flows.delete(name);
    flow?.socket.then(
      (socket) => socket.close(),
      () => {},
    );
  }
}
