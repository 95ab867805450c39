// Wire shapes of agent logs and the batches that agents send (specification "Agent log", facts/platform 4). Used over both HTTP and RPC.
import { type Static, Type as t } from "@sinclair/typebox";
import { LogLevel } from "../log-level.ts";
import { namedObject } from "../shape-names.ts";

/** Maximum lines per request; an agent with more sends several requests. */
export const MAX_BATCH_LINES = 10_000;
/** Maximum characters per line, equal to the limit of all logs of an agent. */
export const MAX_LINE_LENGTH = 1_048_576;

export const AgentLog = namedObject("AgentLog", {
  id: t.Integer({
    description: "The line's ID, which increases with each line. Used as the cursor in `before` and `after`.",
  }),
  created_at: t.String({ format: "date-time", description: "When the line was logged." }),
  level: LogLevel,
  output: t.String({ description: "The text of one line, without the line feed. May contain ANSI color codes." }),
  source_id: t.String({ format: "uuid", description: "The ID of the log source that the line came from." }),
});
export type AgentLog = Static<typeof AgentLog>;

export const NewAgentLog = namedObject("NewAgentLog", {
  created_at: t.Optional(
    t.String({
      maxLength: 64,
      description:
        "When the line was logged. Replaced with the server's time if it differs from it by more than a day.",
    }),
  ),
  level: t.Optional({ ...LogLevel, description: "The level of the line; default `info`." }),
  output: t.String({ maxLength: MAX_LINE_LENGTH, description: "The text of the line. May contain ANSI color codes." }),
});
export type NewAgentLog = Static<typeof NewAgentLog>;

export const PatchLogs = namedObject("AddLogs", {
  log_source_id: t.Optional(
    t.String({
      maxLength: 64,
      description: "The ID of an existing log source. If absent or all zeros, the default source, `External`.",
    }),
  ),
  logs: t.Array(NewAgentLog, {
    minItems: 1,
    maxItems: MAX_BATCH_LINES,
    description: "The lines to add, oldest first. All logs of an agent are limited to 1 MiB.",
  }),
});
export type PatchLogs = Static<typeof PatchLogs>;
