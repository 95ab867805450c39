// The log: `log("db").info("opened", { path })`. Areas are the folders and nouns of the code. src/main.ts configures logging once per run;
// before that, nothing is written. Never log a token, password, key, request body or workspace log line: this module cannot recognize
// secrets.
import { configureSync, getLogger, type Logger, type LogLevel, type LogRecord, resetSync } from "@logtape/logtape";
import { toRfc3339 } from "./clock.ts";
import { recentLog } from "./recent-log.ts";

export type { Logger };

const ROOT = "slipway";

export type Level = "trace" | "debug" | "info" | "warn" | "error";

/** The default level, and the levels of individual areas. */
export type LogLevels = { readonly level: Level; readonly areas: Readonly<Record<string, Level>> };

export interface LogOptions {
  level: Level | LogLevels;
  format: "text" | "json";
  /** Receives one line including its newline. Must not throw. */
  write(line: string): void;
}

/** Returns the logger of an area, such as `db`, `http` or `provisioner`. Cheap; keep it in a module constant. */
export const log = (area: string): Logger => getLogger([ROOT, area]);

/** The area that logs the outcome of each request (./trace.ts). */
export const TRACE_AREA = "trace";

let isTracing = false;

/** Returns whether the area `trace` is at level debug or lower. One comparison, because hot paths call it. */
export const isTraceEnabled = (): boolean => isTracing;

/** Sets levels, format and target for the whole process, replacing earlier settings. */
export const configureLogging = ({ level, format, write }: LogOptions): void => {
  const { level: general, areas } = typeof level === "string" ? { level, areas: {} } : level;
  const formatLine = format === "json" ? formatJsonLine : formatTextLine;
  const areaLevels = Object.entries(areas);
  const traceLevel = areaLevels.find(([area]) => area === TRACE_AREA)?.[1] ?? general;
  isTracing = traceLevel === "debug" || traceLevel === "trace";
  configureSync({
    reset: true,
    sinks: {
      out: (record) => {
        if (isReported(record.properties.error)) return;
        write(formatLine(record));
        keepRecentLine(record);
      },
    },
    loggers: [
      { category: [ROOT], lowestLevel: toLogLevel(general), sinks: ["out"] },
      ...areaLevels.map(([area, areaLevel]) => ({
        category: [ROOT, area],
        lowestLevel: toLogLevel(areaLevel),
        sinks: ["out" as const],
        parentSinks: "override" as const,
      })),
      // The library's own messages, such as a sink that throws.
      { category: ["logtape", "meta"], lowestLevel: "warning", sinks: ["out"] },
    ],
  });
};

const toLogLevel = (level: Level): LogLevel => (level === "warn" ? "warning" : level);

/** Disables the log and resets its target. */
export const resetLogging = (): void => {
  isTracing = false;
  resetSync();
};

/** Returns whether the error or its cause was already logged. Logging it again would flood the log, for example when the disk is full. */
const isReported = (error: unknown): boolean =>
  error instanceof Error && (("isReported" in error && error.isReported === true) || isReported(error.cause));

const keepRecentLine = (record: LogRecord): void =>
  recentLog.add({
    at: record.timestamp,
    level: getLevelName(record),
    area: getCategory(record),
    text: replaceControlCharacters(formatMessage(record) + formatFields(record)),
  });

function formatJsonLine(record: LogRecord): string {
  const head = {
    time: toRfc3339(record.timestamp),
    level: getLevelName(record),
    area: getCategory(record),
    message: formatMessage(record),
  };
  // Slipway's fields last, so that a property named `level` does not replace the level.
  return `${JSON.stringify({ ...record.properties, ...head }, toJsonValue)}\n`;
}

function formatTextLine(record: LogRecord): string {
  const head = `${toRfc3339(record.timestamp)} ${getLevelName(record).toUpperCase().padEnd(5)} ${getCategory(record)}: ${formatMessage(record)}`;
  return `${replaceControlCharacters(head + formatFields(record))}\n`;
}

const formatFields = (record: LogRecord): string =>
  Object.entries(record.properties)
    .map(([key, value]) => ` ${key}=${formatValue(value)}`)
    .join("");

/**
 * Names, paths and other programs' errors can contain these characters, which would move the terminal's cursor, reorder a line or begin
 * another one.
 */
const replaceControlCharacters = (text: string): string =>
  text.replace(/(?![\n\t])[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu, "\ufffd");

const getLevelName = (record: LogRecord): string => (record.level === "warning" ? "warn" : record.level);

const getCategory = (record: LogRecord): string =>
  (record.category[0] === ROOT ? record.category.slice(1) : record.category).join(".");

const formatMessage = (record: LogRecord): string =>
  record.message.map((part, index) => (index % 2 === 0 ? String(part) : formatValue(part))).join("");

function formatValue(value: unknown): string {
  if (typeof value === "string") return /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value);
  if (value instanceof Error) return value.stack ?? String(value);
  return JSON.stringify(value, toJsonValue) ?? String(value);
}

function toJsonValue(_key: string, value: unknown): unknown {
  if (value instanceof Error) {
    return {
      name: value.name,
      message: value.message,
      stack: value.stack,
      ...(value.cause ? { cause: value.cause } : {}),
    };
  }
  if (typeof value === "bigint") return value.toString();
  if (value instanceof Uint8Array) return `${value.byteLength} bytes`;
  return value;
}
