// The tool `spawn_agent`: starts a sub-chat that runs in parallel (facts/chats 5.1, 5.9).
import { Type as t } from "@sinclair/typebox";
import { EFFORTS } from "#schema/chats/model-config.ts";
import { oneOf } from "#schema/one-of.ts";
import { defineTool } from "../tool.ts";
import { SUBAGENT_TYPES } from "./agents.ts";
import description from "./spawn-agent.txt" with { type: "text" };

const MAX_PROMPT_CHARS = 100_000;
const MAX_TITLE_CHARS = 200;

export const spawnAgent = defineTool({
  name: "spawn_agent",
  description,
  changes_nothing: true,
  input_schema: t.Object(
    {
      type: oneOf(
        SUBAGENT_TYPES,
        "general: works with all tools of the workspace. explore: looks around, changes nothing. computer_use: the same as general, and sees and uses the desktop.",
      ),
      prompt: t.String({
        minLength: 1,
        maxLength: MAX_PROMPT_CHARS,
        pattern: "\\S",
        description: "The complete task: the agent sees nothing of this conversation.",
      }),
      title: t.Optional(
        t.String({ maxLength: MAX_TITLE_CHARS, description: "The title; default: the first words of the prompt." }),
      ),
      model_config_id: t.Optional(
        t.String({
          minLength: 1,
          description: "The ID from list_subagent_models; omit it unless the user wants a particular model.",
        }),
      ),
      reasoning_effort: t.Optional(oneOf(EFFORTS, "Leave out for the usual one.")),
    },
    { additionalProperties: false },
  ),
  run({ agents }, input) {
    return agents.spawn(input);
  },
});
