// The tool `interrupt_agent`: stops what an agent is doing (facts/chats 5.1).
import { Type as t } from "@sinclair/typebox";
import { defineTool } from "../tool.ts";
import description from "./interrupt-agent.txt" with { type: "text" };

export const interruptAgent = defineTool({
  name: "interrupt_agent",
  description,
  changes_nothing: true,
  input_schema: t.Object(
    { chat_id: t.String({ minLength: 1, description: "The chat_id returned by spawn_agent." }) },
    { additionalProperties: false },
  ),
  run: ({ agents }, { chat_id }) => agents.interrupt(chat_id),
});
