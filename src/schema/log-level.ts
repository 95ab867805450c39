// Log levels of agent logs, build logs and the server's log.
import { named } from "./named.ts";
import { oneOf } from "./one-of.ts";

/** The index is the value in the level columns of the log tables. */
export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export const LogLevel = named("LogLevel", oneOf(LOG_LEVELS, "How serious it is."));
