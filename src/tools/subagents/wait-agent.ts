// The tool `wait_agent`: the only way to get an agent's result (facts/chats 5.1, 5.9).
import { Type as t } from "@sinclair/typebox";
import { defineTool } from "../tool.ts";
import description from "./wait-agent.txt" with { type: "text" };

const DEFAULT_TIMEOUT_S = 300;
const MAX_TIMEOUT_S = 14_400;

export const waitAgent = defineTool({
  name: "wait_agent",
  description,
  changes_nothing: true,
  only_reads: true,
  input_schema: t.Object(
    {
      chat_id: t.String({ minLength: 1, description: "The chat_id returned by spawn_agent." }),
      timeout_seconds: t.Optional(
        t.Integer({
          minimum: 0,
          maximum: MAX_TIMEOUT_S,
          description: `How long to wait at most, 0 to ${MAX_TIMEOUT_S}; ${DEFAULT_TIMEOUT_S} by default. 0 returns immediately.`,
        }),
      ),
    },
    { additionalProperties: false },
  ),
  run: (context, { chat_id, timeout_seconds = DEFAULT_TIMEOUT_S }, signal) =>
    context.agents.wait(chat_id, timeout_seconds * 1_000, context, signal),
});
