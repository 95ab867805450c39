// The last lines of the server's own log.
import { type Static, Type as t } from "@sinclair/typebox";
import { oneOf } from "../one-of.ts";

export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error"] as const;

export const ServerLogLine = t.Object({
  id: t.Integer({ description: "Grows by one with each line; begins anew with the process." }),
  time: t.String({ format: "date-time" }),
  level: oneOf(LOG_LEVELS),
  area: t.String({ description: "The part of the server." }),
  text: t.String(),
});
export type ServerLogLine = Static<typeof ServerLogLine>;

export const ServerLog = t.Object({
  level: t.String({ description: "What is written at all: the setting log_level." }),
  lines: t.Array(ServerLogLine, { description: "The oldest first." }),
});
export type ServerLog = Static<typeof ServerLog>;
