// Reads an agent's stored lines page by page and packs them into JSON arrays of bounded size. Used by the JSON response, the text response
// and the start of every follower.
import { toRfc3339 } from "#base/clock.ts";
import { ConcurrencyLimit } from "#base/concurrency-limit.ts";
import { listLogSources } from "#db/agents/log-sources.ts";
import { type AgentLogRow, listAgentLogs } from "#db/agents/logs.ts";
import type { Store } from "#db/engine/store.ts";
import type { AgentLog } from "#schema/agents/agent-log.ts";
import { DEFAULT_SOURCE } from "#schema/agents/log-source.ts";
import { LOG_LEVELS, type LogLevel } from "#schema/log-level.ts";

/** Lines read in one query. */
export const PAGE_LINES = 500;
/** Maximum characters of one JSON array; a longer line gets its own array. */
export const FRAME_CHARS = 96 * 1024;
/** Pages read concurrently by all history readers. Further reads wait, so that many readers cannot fill the store's queue. */
const MAX_CONCURRENT_READS = 4;

type LogSource = { id: string; display_name: string };

export class LogPages {
  readonly #store: Store;
  readonly #limit = new ConcurrencyLimit(MAX_CONCURRENT_READS);

  constructor(store: Store) {
    this.#store = store;
  }

  /** Returns one page of lines with `after` < id < `before`, ascending. Fewer than PAGE_LINES means there are no more. */
  read(agent: number, after: number, before: number): Promise<AgentLogRow[]> {
    return this.#limit.run(() => this.#store.scan(listAgentLogs({ agent, after, before, limit: PAGE_LINES })));
  }

  /** Returns whether a line with this ID exists. */
  async has(agent: number, id: number): Promise<boolean> {
    const rows = await this.#store.all(listAgentLogs({ agent, after: id - 1, before: id + 1, limit: 1 }));
    return rows.length > 0;
  }

  /** Returns an agent's log sources by integer key. */
  async loadSources(agent_id: string): Promise<Map<number, LogSource>> {
    const rows = await this.#store.all(listLogSources({ agent_id }));
    return new Map(rows.map(({ key, id, display_name }) => [key, { id, display_name }]));
  }

  /** Returns stored lines as callers see them. */
  async toLogs(agent_id: string, rows: readonly AgentLogRow[]): Promise<AgentLog[]> {
    if (rows.length === 0) return [];
    const sources = await this.loadSources(agent_id);
    return rows.map((row) => ({
      id: row.id,
      created_at: toRfc3339(row.created_at),
      level: LOG_LEVELS[row.level] as LogLevel,
      output: row.output,
      source_id: sources.get(row.source)?.id ?? DEFAULT_SOURCE.id,
    }));
  }
}

/** Returns lines as JSON arrays of at most about FRAME_CHARS each; an empty list for no lines. */
export const toLogFrames = (logs: readonly AgentLog[]): string[] => {
  const frames: string[] = [];
  let start = 0;
  let charCount = 0;
  for (let i = 0; i < logs.length; i++) {
    const { length } = (logs[i] as AgentLog).output;
    if (i > start && charCount + length > FRAME_CHARS) {
      frames.push(JSON.stringify(logs.slice(start, i)));
      start = i;
      charCount = 0;
    }
    charCount += length;
  }
  if (logs.length > start) frames.push(JSON.stringify(start === 0 ? logs : logs.slice(start)));
  return frames;
};
