// Prepares a batch of log lines for storage: cleans, counts and binds them to columns in one pass (rules LG-1 to LG-5). This is the
// product's hottest loop.

import { toRfc3339 } from "#base/clock.ts";
import { conflict, invalidField } from "#base/errors.ts";
import type { PatchLogs } from "#schema/agents/agent-log.ts";
import { LOG_LEVELS, type LogLevel } from "#schema/log-level.ts";
import type { AgentLogLine } from "../runtime/events.ts";
import { clampReportedTime } from "./state.ts";

/** A line as an edge receives it. `created_at` is RFC 3339, or milliseconds since 1970 where the edge has a number. */
export type NewLine = { created_at?: string | number; level?: LogLevel; output: string };
/** What both edges send to the actor. A REST body has this shape. */
export type LogBatch = Pick<PatchLogs, "log_source_id"> & {
  logs: readonly NewLine[];
  /** Identifies the batch, so that a retry is not stored twice. */
  batch_id?: string;
};

/** Returns the ID of a batch that a client sent with an idempotency key. It contains the digest of the batch's content. */
export const toBatchId = (key: string, digest: string): string => `${digest} ${key}`;

/** Returns whether this is the batch that was stored last. Throws 409 when the key was used with different content. */
export const isRepeatedBatch = (last: string | null | undefined, batch_id: string | undefined): boolean => {
  if (batch_id === undefined || !last) return false;
  if (last === batch_id) return true;
  const toKey = (name: string): string | undefined => /^[0-9a-f]{64} (.*)$/s.exec(name)?.[1];
  const key = toKey(batch_id);
  if (key === undefined || toKey(last) !== key) return false;
  throw conflict("This Idempotency-Key was already used with different lines.");
};

export type StoredLine = { created_at: number; level: number; output: string };

const LEVEL_NUMBERS: Readonly<Record<LogLevel, number>> = { trace: 0, debug: 1, info: 2, warn: 3, error: 4 };
const DEFAULT_LEVEL = LEVEL_NUMBERS.info;

/** Removes NUL and lone surrogates, which cannot be stored or sent. Keeps line breaks. */
const clean = (output: string): string => {
  const wellFormed = output.isWellFormed() ? output : output.toWellFormed();
  return wellFormed.includes("\0") ? wellFormed.replaceAll("\0", "\uFFFD") : wellFormed;
};

/**
 * Returns the lines as they will be stored, and their size in UTF-8 bytes after cleaning (an empty line has size 1). Throws 400 with the
 * name of the first line whose `created_at` is not a date-time.
 */
export const toStoredLines = (logs: readonly NewLine[], now: number): { lines: StoredLine[]; bytes: number } => {
  const lines: StoredLine[] = new Array(logs.length);
  let bytes = 0;
  // Lines of a batch often have the same time, which is then parsed once.
  let lastTime: string | number | undefined;
  let at = now;
  for (let i = 0; i < logs.length; i++) {
    const { created_at, level, output } = logs[i] as NewLine;
    if (created_at !== lastTime) {
      lastTime = created_at;
      at = created_at === undefined ? now : toTime(created_at, now, i);
    }
    const cleaned = clean(output);
    // Empty lines take a row too. Without a size they would bypass the limit (rule LG-22).
    bytes += Buffer.byteLength(cleaned) || 1;
    lines[i] = { created_at: at, level: level === undefined ? DEFAULT_LEVEL : LEVEL_NUMBERS[level], output: cleaned };
  }
  return { lines, bytes };
};

const toTime = (given: string | number, now: number, index: number): number => {
  const ms = typeof given === "number" ? given : Date.parse(given);
  if (Number.isNaN(ms)) throw invalidField(`logs.${index}.created_at`, "must be a date-time (RFC 3339)");
  return clampReportedTime(ms, now);
};

/** Returns stored lines in the shape of the wire, with consecutive IDs from `first`. */
export const presentLines = (lines: readonly StoredLine[], first: number, source_id: string): AgentLogLine[] => {
  let ms = Number.NaN;
  let created_at = "";
  return lines.map((line, i) => {
    if (line.created_at !== ms) {
      ms = line.created_at;
      created_at = toRfc3339(ms);
    }
    return { id: first + i, created_at, level: LOG_LEVELS[line.level] as LogLevel, output: line.output, source_id };
  });
};
