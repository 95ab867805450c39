// The tool `list_agents`: lists the agents that this chat has started (facts/chats 5.1).
import { Type as t } from "@sinclair/typebox";
import { tool } from "../tool.ts";
import description from "./list-agents.txt" with { type: "text" };

const PAGE = 10;
const MOST = 50;

export const listAgents = tool({
  name: "list_agents",
  description,
  changes_nothing: true,
  only_reads: true,
  input_schema: t.Object(
    {
      limit: t.Optional(t.Integer({ minimum: 1, maximum: MOST, description: `1 to ${MOST}; ${PAGE} by default.` })),
      offset: t.Optional(t.Integer({ minimum: 0, description: "How many of the newest to pass over." })),
    },
    { additionalProperties: false },
  ),
  run: ({ agents }, { limit = PAGE, offset = 0 }) => agents.list(limit, offset),
});
