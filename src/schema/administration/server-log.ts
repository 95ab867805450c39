// The last lines of the server's own log.
import { type Static, Type as t } from "@sinclair/typebox";
import { LogLevel } from "../log-level.ts";
import { named } from "../named.ts";

export const ServerLogLine = named(
  "ServerLogLine",
  t.Object({
    id: t.Integer({ description: "Grows by one with each line; begins anew with the process." }),
    time: t.String({ format: "date-time" }),
    level: LogLevel,
    area: t.String({ description: "The part of the server." }),
    text: t.String(),
  }),
);
export type ServerLogLine = Static<typeof ServerLogLine>;

export const ServerLog = named(
  "ServerLog",
  t.Object({
    level: t.String({ description: "What is written at all: the setting log_level." }),
    lines: t.Array(ServerLogLine, { description: "The oldest first." }),
  }),
);
export type ServerLog = Static<typeof ServerLog>;
