// Converts log lines of a job to rows, up to the limit of the log, and rows to the lines that followers see (rules JB-9 and JB-10).
import { toRfc3339 } from "#base/clock.ts";
import type { JobLogRow } from "#db/workspaces/jobs.ts";
import { LOG_LEVELS, type LogLevel } from "#schema/log-level.ts";
import { JOB_LOG_SOURCES, type JobLogSource } from "#schema/workspaces/job.ts";
import type { JobLogLine } from "../runtime/events.ts";
import type { JobPatch, JobState } from "./state.ts";

/** Maximum bytes of a job's output. Further output is dropped (facts/platform 2.1). */
export const MAX_JOB_LOG_BYTES = 1_048_576;
/** Longer lines are truncated. */
const MAX_LINE_CHARS = 65_536;
/** Shorter lines count as this many bytes, because each one takes a row. */
const MIN_LINE_BYTES = 16;

export type NewLogLine = {
  readonly created_at: number;
  readonly source: JobLogSource;
  readonly level: LogLevel;
  readonly stage: string;
  readonly output: string;
};

/** Returns how many bytes of a log's limit the line uses. */
export const countLogBytes = (output: string): number => Math.max(Buffer.byteLength(output), MIN_LINE_BYTES);

/**
 * Returns the rows for the lines that fit, with IDs from `firstId`, and the job's new counters. Returns undefined when nothing changes, for
 * example when the log is full.
 */
export const appendLogs = (
  job: JobState,
  lines: readonly NewLogLine[],
  firstId: number,
  now: number,
): { rows: JobLogRow[]; patch: JobPatch } | undefined => {
  if (job.logs_overflowed || lines.length === 0) return undefined;
  const rows: JobLogRow[] = [];
  let length = job.logs_length;
  let hasOverflowed = false;
  for (const line of lines) {
    const output = sanitize(line.output);
    const bytes = countLogBytes(output);
    if (length + bytes > MAX_JOB_LOG_BYTES) {
      hasOverflowed = true;
      break;
    }
    length += bytes;
    rows.push({
      id: firstId + rows.length,
      job: job.key,
      created_at: line.created_at,
      source: JOB_LOG_SOURCES.indexOf(line.source),
      level: LOG_LEVELS.indexOf(line.level),
      stage: line.stage,
      output,
    });
  }
  return { rows, patch: { logs_length: length, logs_overflowed: hasOverflowed, updated_at: now } };
};

/** Also replaces NUL, which many programs treat as the end of a text. */
const sanitize = (output: string): string => output.toWellFormed().replaceAll("\0", "\uFFFD").slice(0, MAX_LINE_CHARS);

/** Returns a stored line in the form for callers and followers. */
export const presentJobLog = (row: JobLogRow): JobLogLine => ({
  id: row.id,
  created_at: toRfc3339(row.created_at),
  log_source: JOB_LOG_SOURCES[row.source] ?? "provisioner",
  log_level: LOG_LEVELS[row.level] ?? "info",
  stage: row.stage,
  output: row.output,
});

const RULER = "=".repeat(72);
/** Returns the log lines about a job that was given up. */
export const createReapLines = (reason: string, now: number): NewLogLine[] =>
  ["", RULER, reason, RULER, ""].map((output) => ({
    created_at: now,
    source: "provisioner_daemon",
    level: "error",
    stage: "Giving up",
    output,
  }));
