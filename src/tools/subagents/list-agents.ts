// The tool `list_agents`: lists the agents that this chat has started (facts/chats 5.1).
import { Type as t } from "@sinclair/typebox";
import { defineTool } from "../tool.ts";
import description from "./list-agents.txt" with { type: "text" };

const DEFAULT_PAGE = 10;
const MAX_PAGE = 50;

export const listAgents = defineTool({
  name: "list_agents",
  description,
  changes_nothing: true,
  only_reads: true,
  input_schema: t.Object(
    {
      limit: t.Optional(
        t.Integer({ minimum: 1, maximum: MAX_PAGE, description: `1 to ${MAX_PAGE}; ${DEFAULT_PAGE} by default.` }),
      ),
      offset: t.Optional(t.Integer({ minimum: 0, description: "The number of newest agents to skip." })),
    },
    { additionalProperties: false },
  ),
  run: ({ agents }, { limit = DEFAULT_PAGE, offset = 0 }) => agents.list(limit, offset),
});
