// The tool `process_output`: the output of a background program, and whether it has ended (facts/chats 5.1).
import { Type as t } from "@sinclair/typebox";
import { createUnitNote, parseDuration } from "../duration.ts";
import { defineTool } from "../tool.ts";
import description from "./process-output.txt" with { type: "text" };
import { followProcess } from "./processes.ts";

const DEFAULT_WAIT_MS = 10_000;
const MAX_MS = 4 * 3_600_000;

export const processOutput = defineTool({
  name: "process_output",
  description,
  changes_nothing: true,
  only_reads: true,
  input_schema: t.Object(
    {
      process_id: t.String({ minLength: 1, description: "The ID returned by execute or process_list." }),
      wait_timeout: t.Optional(
        t.String({ description: 'How long to wait for its end; "10s" by default, "0s" answers immediately.' }),
      ),
    },
    { additionalProperties: false },
  ),
  async run(context, { process_id, wait_timeout }, signal) {
    const wait_ms = parseDuration(wait_timeout, DEFAULT_WAIT_MS, MAX_MS);
    const { process, output, truncated } = await followProcess(context, process_id, wait_ms, signal);
    const toolOutput = { output, ...(truncated ? { truncated } : {}), ...createUnitNote("wait_timeout", wait_timeout) };
    return process.running
      ? { success: true, ...toolOutput, running: true }
      : { success: process.exit_code === 0, ...toolOutput, running: false, exit_code: process.exit_code };
  },
});
