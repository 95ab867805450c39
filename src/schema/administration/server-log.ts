// Wire shapes of the server's log.
import { type Static, Type as t } from "@sinclair/typebox";
import { LogLevel } from "../log-level.ts";
import { namedObject } from "../shape-names.ts";

export const ServerLogLine = namedObject("ServerLogLine", {
  id: t.Integer({ description: "Increases by one with each line; restarts with the process." }),
  time: t.String({ format: "date-time" }),
  level: LogLevel,
  area: t.String({ description: "The part of the server that logged the line." }),
  text: t.String({ description: "The text of the line, without time, level and area." }),
});
export type ServerLogLine = Static<typeof ServerLogLine>;

export const ServerLog = namedObject("ServerLog", {
  level: t.String({ description: "The minimum level that is logged, from the setting `log_level`." }),
  lines: t.Array(ServerLogLine, { description: "The log lines, oldest first." }),
});
export type ServerLog = Static<typeof ServerLog>;
