// One WebSocket that follows an agent's lines: first what is stored, then what comes, without a gap and without doubles
// (rules LG-6 to LG-10). Refuses clients that speak.
import type { Timer } from "#base/clock.ts";
import { log } from "#base/log.ts";
import type { AgentLog } from "#schema/agent-log.ts";
import type { ApiContext } from "../context.ts";
import { CLOSE, type Socket, type SocketHandler } from "../socket.ts";
import { type LogFollowers, worthCompressing } from "./log-followers.ts";
import { logFrames, PAGE_LINES } from "./log-pages.ts";
import type { LogRequest } from "./log-query.ts";
import { type AgentPlace, isLatest, placeOf } from "./place.ts";

/** Bytes that may wait for the reader before the next page is read. */
const ENOUGH_BYTES = 64 * 1024;
/** A reader that takes nothing for this long while history is sent is closed. */
const STALLED_MS = 30_000;
/** Characters of live lines kept while a page is read; with more, another page is read instead. */
const BUFFER_CHARS = 128 * 1024;

export class LogFollower implements SocketHandler {
  readonly #ctx: ApiContext;
  readonly #followers: LogFollowers;
  readonly #place: AgentPlace;
  readonly #request: LogRequest;
  #live: AgentLog[] = [];
  #chars = 0;
  #missed = false;
  #ending = false;
  #over = false;
  #stops: (() => void)[] = [];
  #room: (() => void) | undefined;

  constructor(ctx: ApiContext, followers: LogFollowers, place: AgentPlace, request: LogRequest) {
    this.#ctx = ctx;
    this.#followers = followers;
    this.#place = place;
    this.#request = request;
  }

  open(socket: Socket): void {
    const { topics } = this.#ctx;
    const id = this.#place.agent_id;
    this.#stops = [
      topics.subscribe("agent_logs", id, ({ logs }) => this.#keep(logs)),
      topics.subscribe("agent_gone", id, () => {
        this.#ending = true;
      }),
    ];
    this.#run(socket).catch((error) => {
      log("agents").error("following the logs of {agent} failed: {error}", { agent: id, error });
      socket.close(CLOSE.internal, "the logs could not be read");
    });
  }

  message(socket: Socket): void {
    socket.close(CLOSE.policy, "this stream takes no messages");
  }

  drain(): void {
    this.#room?.();
  }

  close(socket: Socket): void {
    this.#over = true;
    this.#release();
    this.#followers.leave(this.#place.agent_id, socket);
    this.#room?.();
  }

  async #run(socket: Socket): Promise<void> {
    const { agent_id, agent_key } = this.#place;
    const { pages } = this.#followers;
    let cursor = this.#request.after;
    for (let first = true; ; first = false) {
      // What was published until now is stored, so the page has it.
      this.#forget();
      const settling = this.#ending;
      if (settling) await this.#followers.settled(agent_id);
      const rows = await pages.read(agent_key, cursor, Number.MAX_SAFE_INTEGER);
      const logs = await pages.shown(agent_id, rows);
      if (!(await this.#sendPaced(socket, logs, first))) return;
      cursor = rows.at(-1)?.id ?? cursor;
      if (rows.length === PAGE_LINES) continue;
      if (settling) return socket.close(CLOSE.normal, "the agent is no longer in use");
      const place = await placeOf(this.#ctx.store, agent_id);
      if (!place || !isLatest(place)) this.#ending = true;
      if (!this.#ending && !this.#missed) return this.#goLive(socket, cursor);
    }
  }

  /** One synchronous step: the lines that came in meanwhile, then the live topic. */
  #goLive(socket: Socket, cursor: number): void {
    const live = this.#live.filter(({ id }) => id > cursor);
    for (const frame of logFrames(live)) this.#send(socket, frame);
    this.#release();
    if (!socket.closing) this.#followers.join(this.#place.agent_id, socket, this.#request.compress);
  }

  /** Sends lines as fast as the reader takes them. False when the socket is gone or its reader has stalled. */
  async #sendPaced(socket: Socket, logs: readonly AgentLog[], evenEmpty: boolean): Promise<boolean> {
    const frames = logFrames(logs);
    if (frames.length === 0 && evenEmpty) frames.push("[]");
    for (const frame of frames) {
      if (this.#over) return false;
      this.#send(socket, frame);
      if (!(await this.#waitForRoom(socket))) return false;
    }
    return !this.#over;
  }

  #send(socket: Socket, frame: string): void {
    socket.send(frame, this.#request.compress && worthCompressing(frame));
  }

  #keep(logs: readonly AgentLog[]): void {
    if (this.#missed) return;
    for (const { output } of logs) this.#chars += output.length;
    if (this.#chars > BUFFER_CHARS) {
      this.#forget();
      this.#missed = true;
    } else this.#live.push(...logs);
  }

  #forget(): void {
    this.#live = [];
    this.#chars = 0;
    this.#missed = false;
  }

  async #waitForRoom(socket: Socket): Promise<boolean> {
    while (socket.waiting > ENOUGH_BYTES && !this.#over && !socket.closing) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#room = resolve;
      const stalled: Timer = this.#ctx.clock.after(STALLED_MS, () => {
        socket.closeSlow();
        resolve();
      });
      await promise;
      stalled.cancel();
      this.#room = undefined;
    }
    return !this.#over && !socket.closing;
  }

  #release(): void {
    for (const stop of this.#stops) stop();
    this.#stops = [];
    this.#forget();
  }
}
