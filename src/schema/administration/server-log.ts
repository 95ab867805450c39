// Wire shapes of the server's log.
import { type Static, Type as t } from "@sinclair/typebox";
import { LogLevel } from "../log-level.ts";
import { namedObject } from "../shape-names.ts";

export const ServerLogLine = namedObject("ServerLogLine", {
  id: t.Integer({ description: "Increases by one with each line; restarts with the process." }),
  time: t.String({ format: "date-time" }),
  level: LogLevel,
  area: t.String({ description: "The part of the server." }),
  text: t.String(),
});
export type ServerLogLine = Static<typeof ServerLogLine>;

export const ServerLog = namedObject("ServerLog", {
  level: t.String({ description: "The lowest level that is logged: the setting log_level." }),
  lines: t.Array(ServerLogLine, { description: "Oldest first." }),
});
export type ServerLog = Static<typeof ServerLog>;
