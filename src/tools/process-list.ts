// The tool `process_list`: the programs that chats have started in the workspace (facts/chats 5.1).
import { Type as t } from "@sinclair/typebox";
import type { ProcessInfo } from "#schema/agent-files.ts";
import description from "./process-list.txt" with { type: "text" };
import { tool } from "./tool.ts";

const COMMAND_CHARS = 500;

export const processList = tool({
  name: "process_list",
  description,
  input_schema: t.Object({}, { additionalProperties: false }),
  async run({ agent }, _, signal) {
    const path = "/processes/list";
    const { processes } = await agent.call<{ processes: ProcessInfo[] }>({ method: "GET", path, signal });
    return {
      processes: processes.map(({ id, command, directory, running, exit_code, started_at }) => ({
        ...{ id, command: command.slice(0, COMMAND_CHARS), directory, running },
        ...(running ? {} : { exit_code }),
        started_at,
      })),
    };
  },
});
