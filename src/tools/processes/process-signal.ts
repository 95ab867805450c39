// The tool `process_signal`: kills a background program with all its child processes (facts/chats 5.1).
import { Type as t } from "@sinclair/typebox";
import { defineTool } from "../tool.ts";
import description from "./process-signal.txt" with { type: "text" };
import { sendSignal } from "./processes.ts";

export const processSignal = defineTool({
  name: "process_signal",
  description,
  input_schema: t.Object(
    {
      process_id: t.String({ minLength: 1, description: "The ID returned by execute or process_list." }),
      signal: t.Union([t.Literal("terminate"), t.Literal("kill")], {
        description: "terminate sends SIGTERM, kill sends SIGKILL.",
      }),
    },
    { additionalProperties: false },
  ),
  async run({ agent }, { process_id, signal }) {
    await sendSignal(agent, process_id, signal);
    return { success: true, message: `The process was asked to ${signal === "kill" ? "die" : "end"}.` };
  },
});
