// The tool `process_list`: the programs that chats have started in the workspace (facts/chats 5.1).
import { Type as t } from "@sinclair/typebox";
import type { ProcessInfo } from "#schema/agents/agent-files.ts";
import { defineTool } from "../tool.ts";
import description from "./process-list.txt" with { type: "text" };

const MAX_COMMAND_CHARS = 500;
/** Maximum number of ended processes. */
const MAX_ENDED_PROCESSES = 10;

const getSortTime = ({ ended_at, started_at }: ProcessInfo): number => Date.parse(ended_at ?? started_at);

export const processList = defineTool({
  name: "process_list",
  description,
  changes_nothing: true,
  only_reads: true,
  input_schema: t.Object({}, { additionalProperties: false }),
  async run({ agent }, _, signal) {
    const path = "/processes/list";
    const { processes } = await agent.call<{ processes: ProcessInfo[] }>({ method: "GET", path, signal });
    const ended = processes.filter(({ running }) => !running);
    const latest = new Set(ended.toSorted((a, b) => getSortTime(a) - getSortTime(b)).slice(-MAX_ENDED_PROCESSES));
    const shown = processes.filter((one) => one.running || latest.has(one));
    return {
      ...(shown.length < processes.length ? { left_out: processes.length - shown.length } : {}),
      processes: shown.map(({ id, command, directory, running, exit_code, started_at }) => ({
        id,
        command: command.slice(0, MAX_COMMAND_CHARS),
        directory,
        running,
        ...(running ? {} : { exit_code }),
        started_at,
      })),
    };
  },
});
