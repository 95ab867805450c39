// Live log lines of builds and agents. Lines are kept outside of signals, so that ten thousand lines cause one update.
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
  readonly ended?: () => void;
};

/** Maximum number of lines kept; the oldest are dropped first. */
const MAX_LINES = 200_000;

export class LogFeed {
  readonly lines: LogLine[] = [];
  /** Incremented with every change of `lines`, at most once per frame. */
  readonly version: Signal<number> = signal(0);
  /** Number of dropped lines. */
  dropped = 0;
  readonly #sockets = new Map<string, LiveSocket>();
  #planned = false;
  #isMixed = false;

  /** Follows the log at a path below /api/v2. Repeated calls for one path have no effect. */
  follow({ source, path, ended }: FeedOptions): void {
    if (this.#sockets.has(path)) return;
    let last = -1;
    const socket = new LiveSocket({
      address: () => `/api/v2${path}?follow${last < 0 ? "" : `&after=${last}`}`,
      ends: true,
      ...(ended ? { ended } : {}),
      message: (text) => {
        const found = JSON.parse(text) as JobLog | AgentLog[];
        for (const line of Array.isArray(found) ? found : [found]) {
          last = line.id;
          const level = "level" in line ? line.level : line.log_level;
          const stage = "stage" in line && line.output === "" ? line.stage : line.output;
          // Each log has its own connection, so lines of one may arrive after later lines of another.
          if ((this.lines.at(-1)?.at ?? "") > line.created_at) this.#isMixed = true;
          const [isBad, isWarning] = [level === "error", level === "warn"];
          this.lines.push({ source, at: line.created_at, text: stage, isBad, isWarning });
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
    if (this.#planned) return;
    this.#planned = true;
    // Hidden pages draw no frames. Lines that arrive while the page is hidden are shown with the first frame.
    setTimeout(() => {
      this.#planned = false;
      if (this.#isMixed) mergeLogs(this.lines);
      this.#isMixed = false;
      if (this.lines.length > MAX_LINES) {
        this.dropped += this.lines.length - MAX_LINES;
        this.lines.splice(0, this.lines.length - MAX_LINES);
      }
      this.version.value += 1;
    }, 16);
  }
}
