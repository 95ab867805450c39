// Who follows which agent's lines live. Each committed batch becomes a frame once, however many follow, and goes out by Bun's own
// publish; while nobody follows, nothing is built (rules LG-8, LG-9).
import { log } from "#base/log.ts";
import type { AgentLog } from "#schema/agents/agent-log.ts";
import type { ApiContext } from "../context.ts";
import { CLOSE, type Socket } from "../http/socket.ts";
import { LogHistory } from "./log-history.ts";
import { LogPages, logFrames } from "./log-pages.ts";

/** Shorter frames are sent as they are: compressing costs more than it saves. */
const COMPRESS_FROM = 1024;
/** Bun compresses a published frame for each reader again, 40 us for 100 lines; a larger crowd gets it as it is. */
const COMPRESS_CROWD = 16;

export const worthCompressing = (frame: string): boolean => frame.length >= COMPRESS_FROM;

type Followed = {
  readonly id: string;
  readonly sockets: Set<Socket>;
  /** Those who have just come, and the last line that each has read from the store: it may be there before it is published. */
  readonly fresh: Map<Socket, number>;
  readonly stop: () => void;
};

export class LogFollowers {
  readonly pages: LogPages;
  readonly history: LogHistory;
  readonly #ctx: ApiContext;
  readonly #followed = new Map<string, Followed>();

  constructor(ctx: ApiContext) {
    this.#ctx = ctx;
    this.pages = new LogPages(ctx.store);
    this.history = new LogHistory(this.pages);
  }

  /** The id itself, as one string for all who follow the agent: each request brings a copy of its own. */
  nameOf(agent_id: string): string {
    return this.#followed.get(agent_id)?.id ?? agent_id;
  }

  /** From the next committed batch on, the socket gets every frame behind line `cursor`. Synchronous, so that nothing falls between. */
  join(agent_id: string, socket: Socket, cursor: number, compress: boolean): void {
    let followed = this.#followed.get(agent_id);
    if (!followed) {
      followed = { id: agent_id, sockets: new Set(), fresh: new Map(), stop: this.#listen(agent_id) };
      this.#followed.set(agent_id, followed);
    }
    followed.sockets.add(socket);
    followed.fresh.set(socket, cursor);
    socket.follow(toTopic(agent_id, compress));
  }

  leave(agent_id: string, socket: Socket): void {
    const followed = this.#followed.get(agent_id);
    followed?.fresh.delete(socket);
    if (!followed?.sockets.delete(socket) || followed.sockets.size > 0) return;
    followed.stop();
    this.#followed.delete(agent_id);
  }

  /** Resolves when every batch that was sent before has been stored and published; then a stream may end without losing a line. */
  async settled(agent_id: string): Promise<void> {
    try {
      await this.#ctx.agents.ask(agent_id, "settle", {});
    } catch (error) {
      log("agents").debug("an agent went before its last lines were read", { error });
    }
  }

  #listen(agent_id: string): () => void {
    const { topics } = this.#ctx;
    const stops = [
      topics.subscribe("agent_logs", agent_id, ({ logs }) => this.#publish(agent_id, logs)),
      topics.subscribe("agent_logs_missed", agent_id, () => this.#sendAway(agent_id)),
      topics.subscribe("agent_gone", agent_id, () => void this.#end(agent_id)),
    ];
    return () => {
      for (const stop of stops) stop();
    };
  }

  #publish(agent_id: string, logs: readonly AgentLog[]): void {
    const { sockets } = this.#ctx;
    const compressed = toTopic(agent_id, true);
    const plain = toTopic(agent_id, false);
    const crowd = sockets.followersOf(compressed);
    if (crowd + sockets.followersOf(plain) === 0) return;
    const back = this.#setAside(agent_id, logs);
    for (const frame of logFrames(logs)) {
      sockets.publish(compressed, frame, crowd <= COMPRESS_CROWD && worthCompressing(frame));
      sockets.publish(plain, frame);
    }
    for (const join of back) join();
  }

  /** Who has read some of these lines gets the others alone. Answers what brings those sockets back. */
  #setAside(agent_id: string, logs: readonly AgentLog[]): (() => void)[] {
    const fresh = this.#followed.get(agent_id)?.fresh ?? new Map<Socket, number>();
    const back: (() => void)[] = [];
    for (const [socket, cursor] of fresh) {
      if ((logs[0]?.id ?? 0) > cursor) fresh.delete(socket);
      else {
        const topics = socket.unfollow();
        for (const frame of logFrames(logs.filter(({ id }) => id > cursor))) socket.send(frame);
        back.push(() => {
          for (const topic of socket.closing ? [] : topics) socket.follow(topic);
        });
      }
    }
    return back;
  }

  /** Who comes again with the last id that it has seen gets what it has missed. */
  #sendAway(agent_id: string): void {
    for (const socket of [...(this.#followed.get(agent_id)?.sockets ?? [])]) {
      socket.close(CLOSE.tryLater, "lines may be missing, resume from the last id seen");
    }
  }

  async #end(agent_id: string): Promise<void> {
    await this.settled(agent_id);
    for (const socket of [...(this.#followed.get(agent_id)?.sockets ?? [])]) {
      socket.close(CLOSE.normal, "the agent is no longer in use");
    }
  }
}

const toTopic = (agent_id: string, compress: boolean): string =>
  compress ? `agent_logs:${agent_id}` : `agent_logs_plain:${agent_id}`;
