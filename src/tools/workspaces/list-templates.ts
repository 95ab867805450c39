// The tool `list_templates`: lists the templates for workspaces (facts/chats 5.1).
import { Type as t } from "@sinclair/typebox";
import { defineTool } from "../tool.ts";
import description from "./list-templates.txt" with { type: "text" };

export const listTemplates = defineTool({
  name: "list_templates",
  description,
  changes_nothing: true,
  only_reads: true,
  input_schema: t.Object(
    {
      query: t.Optional(t.String({ description: "Only list templates whose name or description contains this text." })),
      page: t.Optional(t.Integer({ minimum: 1, description: "The page number, starting at 1." })),
    },
    { additionalProperties: false },
  ),
  run: ({ services }, { query = "", page = 1 }) => services.listTemplates(query, page),
});
