// What the model learns about the processes of a workspace.
import { expect, test } from "bun:test";
import type { ProcessInfo } from "#schema/agents/agent-files.ts";
import { processList } from "#src/tools/processes/process-list.ts";
import type { ToolContext } from "#src/tools/tool.ts";

test("[TO-3] process_list contains all running processes and the ten that ended last, and counts the omitted ones", async () => {
  const toTime = (minute: number): string => new Date(Date.UTC(2030, 0, 1, 0, minute)).toISOString();
  const processes = Array.from({ length: 30 }, (_, index): ProcessInfo => {
    const running = index % 10 === 0;
    // The first processes to start are the last to end.
    const ended_at = running ? null : toTime(100 - index);
    return {
      id: `${index}`,
      pid: index,
      command: "make",
      directory: "/",
      running,
      exit_code: running ? null : 0,
      timed_out: false,
      started_at: toTime(index),
      ended_at,
    };
  });
  const agent = { call: async () => ({ processes }), bytes: async () => new Uint8Array() } as ToolContext["agent"];
  const result = await processList.run({ agent } as ToolContext, {}, new AbortController().signal);
  expect(result.left_out).toBe(17);
  expect((result.processes as ProcessInfo[]).map(({ id }) => Number(id))).toEqual([
    ...[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 20],
  ]);
});
