// Keeps file descriptors free for the server itself while more connections come than the system allows it to open. Connections can use all but
// a reserve. Once they have, new ones wait at the system, and connections that have brought no request are closed, the longest idle first.
import { closeSync, openSync } from "node:fs";
import type { Server } from "bun";
import { systemClock, type Timer } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { countOpenFiles, getReserve, MAX_RESERVE, openFilesLimit } from "#base/system/open-files.ts";
import { takeAgain, takeNoMore } from "#base/system/same-port.ts";
import { endConnection, setBacklog, type TcpConnection, tcpSocketsOn } from "#base/system/tcp-sockets.ts";

/** How often the descriptors are counted: seldom while there is room, often while there is little. */
const CALM_MS = 200;
const CLOSE_MS = 20;
/** The system's own bound, which a server that may open many files keeps. */
const BACKLOG = 512;
const LOG_AGAIN_MS = 60_000;

export type DescriptorGuardDeps = {
  readonly server: Pick<Server<unknown>, "closeIdleConnections">;
  readonly port: number;
  /** The ports at the other end of connections whose requests are under way. */
  busyPorts(): ReadonlySet<number>;
  /** With TLS bytes go out before there is a request: the ports at the other end of connections that have brought one. Undefined without TLS. */
  readonly heardPorts: Set<number> | undefined;
};

export class DescriptorGuard implements Disposable {
  readonly #deps: DescriptorGuardDeps;
  readonly #limit: number;
  readonly #reserve: number;
  readonly #listener: number;
  #held: number[] = [];
  #isShut = false;
  #timer: Timer | undefined;
  #logged_at = Number.NEGATIVE_INFINITY;
  #closed = 0;

  private constructor(deps: DescriptorGuardDeps, limit: number, listener: number) {
    this.#deps = deps;
    this.#limit = limit;
    this.#reserve = getReserve(limit);
    this.#listener = listener;
    // One turn of the loop accepts everything that waits: that must fit in what is kept free.
    setBacklog(listener, this.#reserve >= MAX_RESERVE ? BACKLOG : Math.max(8, Math.floor(this.#reserve / 2)));
    this.#tick();
  }

  /** Returns undefined where the system does not tell how many files are open, or whose they are. */
  static of(deps: DescriptorGuardDeps): DescriptorGuard | undefined {
    const limit = openFilesLimit();
    const { listener } = tcpSocketsOn(deps.port);
    return limit === undefined || listener === undefined ? undefined : new DescriptorGuard(deps, limit, listener);
  }

  [Symbol.dispose](): void {
    this.#timer?.cancel();
    this.#release();
  }

  #tick(): void {
    const room = this.#room();
    if (!this.#isShut && room <= this.#reserve / 4) this.#shut();
    if (this.#isShut) this.#makeRoom();
    const isClose = this.#isShut || room < 8 * this.#reserve;
    if (!isClose) this.#release();
    else if (!this.#isShut) this.#hold();
    // By the system's clock: connections come in its time also where another one is set.
    this.#timer = systemClock.after(isClose ? CLOSE_MS : CALM_MS, () => this.#tick());
  }

  /** Descriptors that connections can still take. */
  #room(): number {
    return this.#limit - this.#reserve - (countOpenFiles() - this.#held.length);
  }

  #shut(): void {
    this.#isShut = true;
    takeNoMore(this.#listener);
    this.#release();
  }

  /** Opens again once half of the reserve is free beyond the reserve itself. */
  #makeRoom(): void {
    const wanted = this.#reserve / 2;
    if (this.#room() < wanted) this.#closed += this.#deps.server.closeIdleConnections();
    if (this.#room() < wanted) this.#closed += this.#endUnheard();
    this.#tell();
    if (this.#room() < wanted) return;
    this.#isShut = false;
    takeAgain(this.#listener);
  }

  /** What is ended here is closed by the runtime in its next turn. Answers how many. */
  #endUnheard(): number {
    const { port, busyPorts, heardPorts } = this.#deps;
    const { connections } = tcpSocketsOn(port);
    const busy = busyPorts();
    forgetOthers(heardPorts, connections);
    const isUnheard = ({ peerPort, hasAnswered }: TcpConnection): boolean =>
      !busy.has(peerPort) && !(heardPorts ? heardPorts.has(peerPort) : hasAnswered);
    const ended = connections
      .filter(isUnheard)
      .sort((a, b) => b.idleMs - a.idleMs)
      .slice(0, Math.max(this.#reserve, Math.ceil(connections.length / 2)));
    for (const connection of ended) endConnection(connection);
    return ended.length;
  }

  #tell(): void {
    const now = systemClock.monotonic();
    if (now - this.#logged_at < LOG_AGAIN_MS) return;
    log("server").error(
      "file descriptors run out: new connections wait, and those without a request are closed. Raise LimitNOFILE of the service or `ulimit -n`",
      { limit: this.#limit, connections_closed: this.#closed },
    );
    this.#logged_at = now;
    this.#closed = 0;
  }

  /** Takes the reserve, so that no connection gets it. */
  #hold(): void {
    try {
      while (this.#held.length < this.#reserve) this.#held.push(openSync("/dev/null", "r"));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EMFILE") throw error;
    }
  }

  #release(): void {
    for (const descriptor of this.#held.splice(0)) closeSync(descriptor);
  }
}

/** Forgets connections that are over, whose ports may be others' by now. */
const forgetOthers = (heard: Set<number> | undefined, connections: readonly TcpConnection[]): void => {
  const open = new Set(connections.map(({ peerPort }) => peerPort));
  for (const port of heard ?? []) if (!open.has(port)) heard?.delete(port);
};
