// How serious a line of a log is: agents', builds', and the server's own.
import { named } from "./named.ts";
import { oneOf } from "./one-of.ts";

/** Index = what the level columns of the log tables hold. */
export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export const LogLevel = named("LogLevel", oneOf(LOG_LEVELS, "How serious it is."));
