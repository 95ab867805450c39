// A batch of log lines on its way to the store: cleaned, counted and bound to columns in one pass (rules LG-1 to LG-5). This is
// the product's hottest loop.

import { rfc3339 } from "#base/clock.ts";
import { conflict, invalidField } from "#base/errors.ts";
import type { PatchLogs } from "#schema/agents/agent-log.ts";
import { LOG_LEVELS, type LogLevel } from "#schema/log-level.ts";
import type { AgentLogLine } from "../runtime/events.ts";
import { saneTime } from "./state.ts";

/** A line as an edge hands it in: `created_at` as RFC 3339, or in milliseconds since 1970 where the edge has a number. */
export type NewLine = { created_at?: string | number; level?: LogLevel; output: string };
/** What both edges send to the actor; the shape of a REST body fits. */
export type LogBatch = Pick<PatchLogs, "log_source_id"> & {
  logs: readonly NewLine[];
  /** Names the batch, so that one sent again is not stored again. */
  batch_id?: string;
};

/** The name of a batch that a client names by a key: what is in it is part of the name. */
export const batchName = (key: string, digest: string): string => `${digest} ${key}`;

/** True when this batch is the one that was stored last. 409 when its key named another one then. */
export const isBatchAgain = (last: string | null | undefined, batch_id: string | undefined): boolean => {
  if (batch_id === undefined || !last) return false;
  if (last === batch_id) return true;
  const keyOf = (name: string): string | undefined => /^[0-9a-f]{64} (.*)$/s.exec(name)?.[1];
  const key = keyOf(batch_id);
  if (key === undefined || keyOf(last) !== key) return false;
  throw conflict("This Idempotency-Key came with other lines before.");
};

export type StoredLine = { created_at: number; level: number; output: string };

const NUMBERS: Readonly<Record<LogLevel, number>> = { trace: 0, debug: 1, info: 2, warn: 3, error: 4 };
const INFO = NUMBERS.info;

/** NUL and lone surrogates cannot be stored or sent as they are; line breaks are kept. */
const clean = (output: string): string => {
  const formed = output.isWellFormed() ? output : output.toWellFormed();
  return formed.includes("\0") ? formed.replaceAll("\0", "\uFFFD") : formed;
};

/**
 * The lines as they will be stored, and the bytes of their output in UTF-8 after cleaning, an empty line as one. 400 names the first line whose
 * `created_at` is not a date-time; nothing is stored then.
 */
export const storedLines = (logs: readonly NewLine[], now: number): { lines: StoredLine[]; bytes: number } => {
  const lines: StoredLine[] = new Array(logs.length);
  let bytes = 0;
  // Lines of one batch often carry the same time.
  let text: string | number | undefined;
  let at = now;
  for (let i = 0; i < logs.length; i++) {
    const { created_at, level, output } = logs[i] as NewLine;
    if (created_at !== text) {
      text = created_at;
      at = created_at === undefined ? now : toTime(created_at, now, i);
    }
    const cleaned = clean(output);
    // Empty lines are rows, too: without this there would be no end to them (rule LG-22).
    bytes += Buffer.byteLength(cleaned) || 1;
    lines[i] = { created_at: at, level: level === undefined ? INFO : NUMBERS[level], output: cleaned };
  }
  return { lines, bytes };
};

const toTime = (given: string | number, now: number, index: number): number => {
  const ms = typeof given === "number" ? given : Date.parse(given);
  if (Number.isNaN(ms)) throw invalidField(`logs.${index}.created_at`, "must be a date-time (RFC 3339)");
  return saneTime(ms, now);
};

/** Stored lines as callers see them; ids are consecutive from `first`. */
export const shownLines = (lines: readonly StoredLine[], first: number, source_id: string): AgentLogLine[] => {
  let ms = Number.NaN;
  let created_at = "";
  return lines.map((line, i) => {
    if (line.created_at !== ms) {
      ms = line.created_at;
      created_at = rfc3339(ms);
    }
    return { id: first + i, created_at, level: LOG_LEVELS[line.level] as LogLevel, output: line.output, source_id };
  });
};
