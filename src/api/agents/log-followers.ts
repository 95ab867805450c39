// Tracks which sockets follow which agent's log live. Each committed batch is encoded once, however many clients follow, and sent with
// Bun's publish. Without followers, nothing is encoded (rules LG-8, LG-9).
import { log } from "#base/log.ts";
import type { AgentLog } from "#schema/agents/agent-log.ts";
import type { ApiContext } from "../context.ts";
import { CLOSE, type Socket } from "../http/socket.ts";
import { LogHistory } from "./log-history.ts";
import { LogPages, toLogFrames } from "./log-pages.ts";

/** Shorter frames are sent uncompressed, because compressing them costs more than it saves. */
const MIN_COMPRESSED_CHARS = 1024;
/**
 * Bun compresses a published frame separately for each client, 40 us for 100 lines. Beyond this many clients, frames are sent uncompressed.
 */
const MIN_COMPRESSED_FOLLOWERS = 16;

export const shouldCompress = (frame: string): boolean => frame.length >= MIN_COMPRESSED_CHARS;

type FollowedAgent = {
  readonly id: string;
  readonly sockets: Set<Socket>;
  /** Clients that have just joined, with the last line that each has read from the store: a line can be stored before it is published. */
  readonly lastReadIds: Map<Socket, number>;
  readonly stop: () => void;
};

export class LogFollowers {
  readonly pages: LogPages;
  readonly history: LogHistory;
  readonly #ctx: ApiContext;
  readonly #followedAgents = new Map<string, FollowedAgent>();

  constructor(ctx: ApiContext) {
    this.#ctx = ctx;
    this.pages = new LogPages(ctx.store);
    this.history = new LogHistory(this.pages);
  }

  /** Returns one shared string for all followers of the agent, because each request brings its own copy of the ID. */
  internId(agent_id: string): string {
    return this.#followedAgents.get(agent_id)?.id ?? agent_id;
  }

  /**
   * Sends every frame after line `cursor` to the socket, starting with the next committed batch. Synchronous, so that no line is missed in
   * between.
   */
  join(agent_id: string, socket: Socket, cursor: number, compress: boolean): void {
    let followed = this.#followedAgents.get(agent_id);
    if (!followed) {
      followed = { id: agent_id, sockets: new Set(), lastReadIds: new Map(), stop: this.#listen(agent_id) };
      this.#followedAgents.set(agent_id, followed);
    }
    followed.sockets.add(socket);
    followed.lastReadIds.set(socket, cursor);
    socket.follow(toTopic(agent_id, compress));
  }

  leave(agent_id: string, socket: Socket): void {
    const followed = this.#followedAgents.get(agent_id);
    followed?.lastReadIds.delete(socket);
    if (!followed?.sockets.delete(socket) || followed.sockets.size > 0) return;
    followed.stop();
    this.#followedAgents.delete(agent_id);
  }

  /** Resolves when every batch sent before has been stored and published. A stream can then end without losing a line. */
  async flush(agent_id: string): Promise<void> {
    try {
      await this.#ctx.agents.ask(agent_id, "settle", {});
    } catch (error) {
      log("agents").debug("an agent was replaced before its last lines were read", { error });
    }
  }

  #listen(agent_id: string): () => void {
    const { topics } = this.#ctx;
    const unsubscribes = [
      topics.subscribe("agent_logs", agent_id, ({ logs }) => this.#publish(agent_id, logs)),
      topics.subscribe("agent_logs_missed", agent_id, () => this.#disconnectAll(agent_id)),
      topics.subscribe("agent_gone", agent_id, () => void this.#end(agent_id)),
    ];
    return () => {
      for (const unsubscribe of unsubscribes) unsubscribe();
    };
  }

  #publish(agent_id: string, logs: readonly AgentLog[]): void {
    const { sockets } = this.#ctx;
    const compressedTopic = toTopic(agent_id, true);
    const plainTopic = toTopic(agent_id, false);
    const compressedCount = sockets.countFollowers(compressedTopic);
    if (compressedCount + sockets.countFollowers(plainTopic) === 0) return;
    const rejoinAll = this.#unfollowAhead(agent_id, logs);
    for (const frame of toLogFrames(logs)) {
      sockets.publish(compressedTopic, frame, compressedCount <= MIN_COMPRESSED_FOLLOWERS && shouldCompress(frame));
      sockets.publish(plainTopic, frame);
    }
    for (const rejoin of rejoinAll) rejoin();
  }

  /**
   * Unfollows the sockets that have already read some of these lines, and sends them only the lines they lack. Returns functions that make
   * the sockets follow again.
   */
  #unfollowAhead(agent_id: string, logs: readonly AgentLog[]): (() => void)[] {
    const lastReadIds = this.#followedAgents.get(agent_id)?.lastReadIds ?? new Map<Socket, number>();
    const rejoinAll: (() => void)[] = [];
    for (const [socket, cursor] of lastReadIds) {
      if ((logs[0]?.id ?? 0) > cursor) lastReadIds.delete(socket);
      else {
        const topics = socket.unfollow();
        for (const frame of toLogFrames(logs.filter(({ id }) => id > cursor))) socket.send(frame);
        rejoinAll.push(() => {
          for (const topic of socket.closing ? [] : topics) socket.follow(topic);
        });
      }
    }
    return rejoinAll;
  }

  /** Closes all followers. A client that reconnects with the last ID it has seen gets the lines it missed. */
  #disconnectAll(agent_id: string): void {
    for (const socket of [...(this.#followedAgents.get(agent_id)?.sockets ?? [])]) {
      socket.close(CLOSE.tryLater, "lines may be missing, resume from the last id seen");
    }
  }

  async #end(agent_id: string): Promise<void> {
    await this.flush(agent_id);
    for (const socket of [...(this.#followedAgents.get(agent_id)?.sockets ?? [])]) {
      socket.close(CLOSE.normal, "the agent is no longer in use");
    }
  }
}

const toTopic = (agent_id: string, compress: boolean): string =>
  compress ? `agent_logs:${agent_id}` : `agent_logs_plain:${agent_id}`;
