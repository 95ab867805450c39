// Follows an agent's log over one WebSocket: first the stored lines, then live ones, without gaps or duplicates (rules LG-6 to LG-10).
// Closes the connection of a client that sends anything.
import type { Timer } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { type AgentAccessRow, findAgentById, isSignedIn } from "#domain/agents/find.ts";
import type { AgentLog } from "#schema/agents/agent-log.ts";
import type { ApiContext } from "../context.ts";
import { CLOSE, type Socket, type SocketHandler } from "../http/socket.ts";
import { type LogFollowers, shouldCompress } from "./log-followers.ts";
import { toLogFrames } from "./log-pages.ts";
import type { LogRequest } from "./log-query.ts";

/** Maximum bytes buffered for the client before the next page is read. */
const PAUSE_BYTES = 64 * 1024;
/** A client that reads nothing for this long while history is sent is disconnected. */
const STALL_TIMEOUT_MS = 30_000;
/** Characters of live lines buffered while a page is read. Beyond this limit, another page is read instead. */
const MAX_BUFFERED_CHARS = 128 * 1024;

/** State a follower needs until it is live. Kept separate because ten thousand live followers need none of it. */
type ReadState = {
  readonly agent: AgentAccessRow;
  readonly request: LogRequest;
  liveLines: AgentLog[];
  liveCharCount: number;
  hasMissedLines: boolean;
  /** The agent is no longer in use: the stream ends after its last stored line. */
  isEnding: boolean;
  cleanups: (() => void)[];
  /** Continues after the client has read enough, or has disconnected. */
  resume: (() => void) | undefined;
};

export class LogFollower implements SocketHandler {
  readonly #ctx: ApiContext;
  readonly #followers: LogFollowers;
  readonly #agent_id: string;
  #reading: ReadState | undefined;

  constructor(ctx: ApiContext, followers: LogFollowers, agent: AgentAccessRow, request: LogRequest) {
    this.#ctx = ctx;
    this.#followers = followers;
    this.#agent_id = followers.internId(agent.agent_id);
    this.#reading = {
      agent,
      request,
      liveLines: [],
      liveCharCount: 0,
      hasMissedLines: false,
      isEnding: false,
      cleanups: [],
      resume: undefined,
    };
  }

  open(socket: Socket): void {
    const reading = this.#reading;
    if (!reading) return;
    const { topics } = this.#ctx;
    reading.cleanups = [
      this.#followers.history.hold(reading.agent.agent_key),
      topics.subscribe("agent_logs", this.#agent_id, ({ logs }) => bufferLines(reading, logs)),
      topics.subscribe("agent_logs_missed", this.#agent_id, () => {
        reading.hasMissedLines = true;
      }),
      topics.subscribe("agent_gone", this.#agent_id, () => {
        reading.isEnding = true;
      }),
    ];
    this.#run(socket, reading).catch((error) => {
      // The follower has already left, for example because the server stopped while history was being read.
      if (socket.closing || this.#reading !== reading) return;
      log("agents").error("following the logs of {agent} failed: {error}", { agent: this.#agent_id, error });
      socket.close(CLOSE.internal, "the logs could not be read");
    });
  }

  message(socket: Socket): void {
    socket.close(CLOSE.policy, "this stream takes no messages");
  }

  drain(): void {
    this.#reading?.resume?.();
  }

  close(socket: Socket): void {
    const reading = this.#reading;
    this.#release();
    this.#followers.leave(this.#agent_id, socket);
    reading?.resume?.();
  }

  async #run(socket: Socket, reading: ReadState): Promise<void> {
    const { agent_id, agent_key } = reading.agent;
    const { history } = this.#followers;
    const { after } = reading.request;
    let cursor = after;
    // A client can pass an `after` that does not exist yet; it has not read that line.
    const isStored = after > 0 && (await this.#followers.pages.has(agent_key, after));
    for (let isFirst = true; ; isFirst = false) {
      // Every line published until now is stored, so the page contains it.
      clearBuffer(reading);
      const isLastPass = reading.isEnding;
      if (isLastPass) await this.#followers.flush(agent_id);
      const { frames, last, isFull } = await history.page(agent_id, agent_key, cursor);
      if (!(await this.#sendPaced(socket, reading, frames, isFirst))) return;
      cursor = last ?? cursor;
      if (isFull) continue;
      if (isLastPass) return socket.close(CLOSE.normal, "the agent is no longer in use");
      const agent = await findAgentById(this.#ctx.store, agent_id);
      if (!agent || !isSignedIn(agent)) reading.isEnding = true;
      if (!reading.isEnding && !reading.hasMissedLines)
        return this.#goLive(socket, reading, { cursor, isRead: isStored || cursor !== after });
    }
  }

  /** Sends the buffered lines and joins the live topic in one synchronous step. `isRead`: line `cursor` is stored and the client has it. */
  #goLive(
    socket: Socket,
    { liveLines, request }: ReadState,
    { cursor, isRead }: { cursor: number; isRead: boolean },
  ): void {
    const newLines = liveLines.filter(({ id }) => id > cursor);
    for (const frame of toLogFrames(newLines)) send(socket, frame, request);
    this.#release();
    const last = newLines.at(-1)?.id ?? (isRead ? cursor : 0);
    if (!socket.closing) this.#followers.join(this.#agent_id, socket, last, request.compress);
  }

  /** Sends lines with backpressure. Returns false when the socket has disconnected or its client has stalled. */
  async #sendPaced(
    socket: Socket,
    reading: ReadState,
    frames: readonly string[],
    sendsEmptyList: boolean,
  ): Promise<boolean> {
    for (const frame of frames.length === 0 && sendsEmptyList ? ["[]"] : frames) {
      if (!this.#reading) return false;
      send(socket, frame, reading.request);
      if (!(await this.#waitForRoom(socket, reading))) return false;
    }
    return this.#reading !== undefined;
  }

  async #waitForRoom(socket: Socket, reading: ReadState): Promise<boolean> {
    while (socket.waiting > PAUSE_BYTES && this.#reading && !socket.closing) {
      const { promise, resolve } = Promise.withResolvers<void>();
      reading.resume = resolve;
      const stallTimer: Timer = this.#ctx.clock.after(STALL_TIMEOUT_MS, () => {
        socket.closeSlow();
        resolve();
      });
      await promise;
      stallTimer.cancel();
      reading.resume = undefined;
    }
    return this.#reading !== undefined && !socket.closing;
  }

  /** Frees the reading state once the socket is live or closed. */
  #release(): void {
    for (const stop of this.#reading?.cleanups ?? []) stop();
    this.#reading = undefined;
  }
}

const send = (socket: Socket, frame: string, { compress }: LogRequest): void => {
  socket.send(frame, compress && shouldCompress(frame));
};

const bufferLines = (reading: ReadState, logs: readonly AgentLog[]): void => {
  if (reading.hasMissedLines) return;
  for (const { output } of logs) reading.liveCharCount += output.length;
  if (reading.liveCharCount > MAX_BUFFERED_CHARS) {
    clearBuffer(reading);
    reading.hasMissedLines = true;
  } else reading.liveLines.push(...logs);
};

const clearBuffer = (reading: ReadState): void => {
  reading.liveLines = [];
  reading.liveCharCount = 0;
  reading.hasMissedLines = false;
};
