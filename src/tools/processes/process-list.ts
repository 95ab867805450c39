// The tool `process_list`: the programs that chats have started in the workspace (facts/chats 5.1).
import { Type as t } from "@sinclair/typebox";
import type { ProcessInfo } from "#schema/agents/agent-files.ts";
import { tool } from "../tool.ts";
import description from "./process-list.txt" with { type: "text" };

const COMMAND_CHARS = 500;
/** Maximum number of ended processes. */
const LATEST = 10;

const order = ({ ended_at, started_at }: ProcessInfo): number => Date.parse(ended_at ?? started_at);

export const processList = tool({
  name: "process_list",
  description,
  changes_nothing: true,
  only_reads: true,
  input_schema: t.Object({}, { additionalProperties: false }),
  async run({ agent }, _, signal) {
    const path = "/processes/list";
    const { processes } = await agent.call<{ processes: ProcessInfo[] }>({ method: "GET", path, signal });
    const ended = processes.filter(({ running }) => !running);
    const latest = new Set(ended.toSorted((a, b) => order(a) - order(b)).slice(-LATEST));
    const shown = processes.filter((one) => one.running || latest.has(one));
    return {
      ...(shown.length < processes.length ? { left_out: processes.length - shown.length } : {}),
      processes: shown.map(({ id, command, directory, running, exit_code, started_at }) => ({
        id,
        command: command.slice(0, COMMAND_CHARS),
        directory,
        running,
        ...(running ? {} : { exit_code }),
        started_at,
      })),
    };
  },
});
