// Live log lines of builds and agents. Lines are stored outside of signals, so that ten thousand lines cause one update.
import { type Signal, signal } from "@preact/signals";
import type { AgentLog } from "#schema/agents/agent-log.ts";
import type { JobLog } from "#schema/workspaces/job.ts";
import { LiveSocket } from "./live-socket.ts";
import { mergeLogs } from "./log-order.ts";

export type LogLine = {
  /** The log's source: `build`, or the name of an agent. */
  readonly source: string;
  readonly at: string;
  readonly text: string;
  readonly isBad: boolean;
  readonly isWarning?: boolean;
};

type FeedOptions = {
  readonly source: string;
  readonly path: string;
  /** Called after the last line of the log. */
  readonly onEnd?: () => void;
};

/** Maximum number of lines kept; the oldest are dropped first. */
const MAX_LINES = 200_000;

export class LogFeed {
  readonly lines: LogLine[] = [];
  /** Incremented with every change of `lines`, at most once per frame. */
  readonly version: Signal<number> = signal(0);
  /** Number of dropped lines. */
  droppedCount = 0;
  readonly #sockets = new Map<string, LiveSocket>();
  #isUpdateScheduled = false;
  #isUnordered = false;

  /** Follows the log at a path below /api/v2. Repeated calls for one path have no effect. */
  follow({ source, path, onEnd }: FeedOptions): void {
    if (this.#sockets.has(path)) return;
    let lastId = -1;
    const socket = new LiveSocket({
      address: () => `/api/v2${path}?follow${lastId < 0 ? "" : `&after=${lastId}`}`,
      ends: true,
      ...(onEnd ? { onComplete: onEnd } : {}),
      onMessage: (text) => {
        const message = JSON.parse(text) as JobLog | AgentLog[];
        for (const line of Array.isArray(message) ? message : [message]) {
          lastId = line.id;
          const level = "level" in line ? line.level : line.log_level;
          const text = "stage" in line && line.output === "" ? line.stage : line.output;
          // Each log has its own connection, so lines of one may arrive after later lines of another.
          if ((this.lines.at(-1)?.at ?? "") > line.created_at) this.#isUnordered = true;
          const [isBad, isWarning] = [level === "error", level === "warn"];
          this.lines.push({ source, at: line.created_at, text, isBad, isWarning });
        }
        this.#scheduleUpdate();
      },
    });
    this.#sockets.set(path, socket);
  }

  /** Adds lines from another source. */
  add(lines: readonly LogLine[]): void {
    this.lines.push(...lines);
    this.#scheduleUpdate();
  }

  end(): void {
    for (const socket of this.#sockets.values()) socket.end();
  }

  #scheduleUpdate(): void {
    if (this.#isUpdateScheduled) return;
    this.#isUpdateScheduled = true;
    // Hidden pages draw no frames. Lines that arrive while the page is hidden are shown with the first frame.
    setTimeout(() => {
      this.#isUpdateScheduled = false;
      if (this.#isUnordered) mergeLogs(this.lines);
      this.#isUnordered = false;
      if (this.lines.length > MAX_LINES) {
        this.droppedCount += this.lines.length - MAX_LINES;
        this.lines.splice(0, this.lines.length - MAX_LINES);
      }
      this.version.value += 1;
    }, 16);
  }
}
