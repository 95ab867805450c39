// Log lines as they come, of builds and agents. Lines are kept outside of signals, so that ten thousand lines are one change.
import { type Signal, signal } from "@preact/signals";
import type { AgentLog } from "#schema/agents/agent-log.ts";
import type { JobLog } from "#schema/workspaces/job.ts";
import { LiveSocket } from "./live-socket.ts";
import { mergeLogs } from "./log-order.ts";

export type LogLine = {
  /** Which log: `build`, or the name of an agent. */
  readonly source: string;
  readonly at: string;
  readonly text: string;
  readonly isBad: boolean;
};

type Wanted = {
  readonly source: string;
  readonly path: string;
  /** Called after the last line of the log. */
  readonly ended?: () => void;
};

/** Lines that are kept; the oldest go first. */
const LIMIT = 200_000;

export class LogFeed {
  readonly lines: LogLine[] = [];
  /** Grows with every change of `lines`, at most once for each picture the screen shows. */
  readonly version: Signal<number> = signal(0);
  /** Lines that were discarded. */
  dropped = 0;
  readonly #sockets = new Map<string, LiveSocket>();
  #planned = false;
  #isMixed = false;

  /** Follows the log at a path below /api/v2; once for each path. */
  follow({ source, path, ended }: Wanted): void {
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
          // Each log comes on a line of its own: what is stored of one may arrive after the end of another.
          if ((this.lines.at(-1)?.at ?? "") > line.created_at) this.#isMixed = true;
          this.lines.push({ source, at: line.created_at, text: stage, isBad: level === "error" });
        }
        this.#changed();
      },
    });
    this.#sockets.set(path, socket);
  }

  /** Lines that came another way. */
  add(lines: readonly LogLine[]): void {
    this.lines.push(...lines);
    this.#changed();
  }

  end(): void {
    for (const socket of this.#sockets.values()) socket.end();
  }

  #changed(): void {
    if (this.#planned) return;
    this.#planned = true;
    // A hidden page draws no pictures; what came in the meantime is shown with the first.
    setTimeout(() => {
      this.#planned = false;
      if (this.#isMixed) mergeLogs(this.lines);
      this.#isMixed = false;
      if (this.lines.length > LIMIT) {
        this.dropped += this.lines.length - LIMIT;
        this.lines.splice(0, this.lines.length - LIMIT);
      }
      this.version.value += 1;
    }, 16);
  }
}
