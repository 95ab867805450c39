// The tool `list_subagent_models`: lists the models with which agents can be started (facts/chats 5.1).
import { Type as t } from "@sinclair/typebox";
import { defineTool } from "../tool.ts";
import description from "./list-subagent-models.txt" with { type: "text" };

export const listSubagentModels = defineTool({
  name: "list_subagent_models",
  description,
  changes_nothing: true,
  only_reads: true,
  input_schema: t.Object({}, { additionalProperties: false }),
  run: ({ agents }) => agents.models(),
});
