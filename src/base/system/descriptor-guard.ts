// Keeps file descriptors free for the server itself when more connections arrive than the system allows. Connections can use all but a
// reserve. Beyond that, new ones wait in the backlog, and connections without a request are closed, longest idle first.
import { closeSync, openSync } from "node:fs";
import type { Server } from "bun";
import { systemClock, type Timer } from "../clock.ts";
import { log } from "../log.ts";
import { countOpenFiles, getReserve, MAX_RESERVE, openFilesLimit } from "./open-files.ts";
import { resumeAccepting, stopAccepting } from "./same-port.ts";
import { findTcpSockets, setBacklog, shutDownConnection, type TcpConnection } from "./tcp-sockets.ts";

/** How often descriptors are counted: rarely while many are free, often when few are. */
const CALM_INTERVAL_MS = 200;
const BUSY_INTERVAL_MS = 20;
/** The runtime's own backlog, used by a server with a high limit of open files. */
const BACKLOG = 512;
const LOG_INTERVAL_MS = 60_000;

export type DescriptorGuardDeps = {
  readonly server: Pick<Server<unknown>, "closeIdleConnections">;
  readonly port: number;
  /** Returns the remote ports of connections with requests in progress. */
  busyPorts(): ReadonlySet<number>;
  /**
   * The remote ports of connections that have sent a request. Undefined without TLS, because then a connection that has received bytes has
   * sent a request.
   */
  readonly heardPorts: Set<number> | undefined;
};

export class DescriptorGuard implements Disposable {
  readonly #deps: DescriptorGuardDeps;
  readonly #limit: number;
  readonly #reserveCount: number;
  readonly #listener: number;
  #reserved: number[] = [];
  #isStopped = false;
  #timer: Timer | undefined;
  #loggedAt = Number.NEGATIVE_INFINITY;
  #closedCount = 0;

  private constructor(deps: DescriptorGuardDeps, limit: number, listener: number) {
    this.#deps = deps;
    this.#limit = limit;
    this.#reserveCount = getReserve(limit);
    this.#listener = listener;
    // One turn of the event loop accepts the whole backlog, so the backlog must fit into the reserve.
    setBacklog(listener, this.#reserveCount >= MAX_RESERVE ? BACKLOG : Math.max(8, Math.floor(this.#reserveCount / 2)));
    this.#tick();
  }

  /** Returns undefined when the system does not report the limit of open files, or the sockets of this process. */
  static create(deps: DescriptorGuardDeps): DescriptorGuard | undefined {
    const limit = openFilesLimit();
    const { listener } = findTcpSockets(deps.port);
    return limit === undefined || listener === undefined ? undefined : new DescriptorGuard(deps, limit, listener);
  }

  [Symbol.dispose](): void {
    this.#timer?.cancel();
    this.#release();
  }

  #tick(): void {
    const freeCount = this.#countFree();
    if (!this.#isStopped && freeCount <= this.#reserveCount / 4) this.#stopAccepting();
    if (this.#isStopped) this.#makeRoom();
    const isNearLimit = this.#isStopped || freeCount < 8 * this.#reserveCount;
    if (!isNearLimit) this.#release();
    else if (!this.#isStopped) this.#reserveDescriptors();
    // Uses the system clock, because connections arrive in real time even when tests replace the clock.
    this.#timer = systemClock.after(isNearLimit ? BUSY_INTERVAL_MS : CALM_INTERVAL_MS, () => this.#tick());
  }

  /** Returns the number of descriptors that connections can still use. */
  #countFree(): number {
    return this.#limit - this.#reserveCount - (countOpenFiles() - this.#reserved.length);
  }

  #stopAccepting(): void {
    this.#isStopped = true;
    stopAccepting(this.#listener);
    this.#release();
  }

  /** Accepts connections again once half of the reserve is free in addition to the reserve itself. */
  #makeRoom(): void {
    const neededCount = this.#reserveCount / 2;
    if (this.#countFree() < neededCount) this.#closedCount += this.#deps.server.closeIdleConnections();
    if (this.#countFree() < neededCount) this.#closedCount += this.#closeSilent();
    this.#logThrottled();
    if (this.#countFree() < neededCount) return;
    this.#isStopped = false;
    resumeAccepting(this.#listener);
  }

  /** Shuts down connections without a request and returns their number; the runtime closes them in its next turn. */
  #closeSilent(): number {
    const { port, busyPorts, heardPorts } = this.#deps;
    const { connections } = findTcpSockets(port);
    const busy = busyPorts();
    forgetClosed(heardPorts, connections);
    const isSilent = ({ peerPort, hasAnswered }: TcpConnection): boolean =>
      !busy.has(peerPort) && !(heardPorts ? heardPorts.has(peerPort) : hasAnswered);
    const ended = connections
      .filter(isSilent)
      .sort((a, b) => b.idleMs - a.idleMs)
      .slice(0, Math.max(this.#reserveCount, Math.ceil(connections.length / 2)));
    for (const connection of ended) shutDownConnection(connection);
    return ended.length;
  }

  #logThrottled(): void {
    const now = systemClock.monotonic();
    if (now - this.#loggedAt < LOG_INTERVAL_MS) return;
    log("server").error(
      "file descriptors run out: new connections wait, and those without a request are closed. Raise LimitNOFILE of the service or `ulimit -n`",
      { limit: this.#limit, connections_closed: this.#closedCount },
    );
    this.#loggedAt = now;
    this.#closedCount = 0;
  }

  /** Occupies the reserve, so that connections cannot use it. */
  #reserveDescriptors(): void {
    try {
      while (this.#reserved.length < this.#reserveCount) this.#reserved.push(openSync("/dev/null", "r"));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EMFILE") throw error;
    }
  }

  #release(): void {
    for (const descriptor of this.#reserved.splice(0)) closeSync(descriptor);
  }
}

/** Removes the ports of closed connections, because new connections may use them. */
const forgetClosed = (ports: Set<number> | undefined, connections: readonly TcpConnection[]): void => {
  const open = new Set(connections.map(({ peerPort }) => peerPort));
  for (const port of ports ?? []) if (!open.has(port)) ports?.delete(port);
};
