// Log levels of agent logs, build logs and the server's log.

import { oneOf } from "./one-of.ts";
import { named } from "./shape-names.ts";

/** The index is the value in the level columns of the log tables. */
export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export const LogLevel = named("LogLevel", oneOf(LOG_LEVELS, "The severity of the log line."));
