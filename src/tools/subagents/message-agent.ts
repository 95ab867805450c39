// The tool `message_agent`: sends another message to an agent, like a user would (facts/chats 5.1).
import { Type as t } from "@sinclair/typebox";
import { defineTool } from "../tool.ts";
import description from "./message-agent.txt" with { type: "text" };

export const messageAgent = defineTool({
  name: "message_agent",
  description,
  changes_nothing: true,
  input_schema: t.Object(
    {
      chat_id: t.String({ minLength: 1, description: "The chat_id returned by spawn_agent." }),
      message: t.String({ minLength: 1, maxLength: 100_000, pattern: "\\S" }),
      interrupt: t.Optional(
        t.Boolean({
          description:
            "Interrupt the agent's current work for this message; otherwise the agent reads it when it has finished.",
        }),
      ),
    },
    { additionalProperties: false },
  ),
  run: ({ agents }, { chat_id, message, interrupt = false }) => agents.message(chat_id, message, interrupt),
});
