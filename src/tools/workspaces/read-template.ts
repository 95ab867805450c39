// The tool `read_template`: returns a template's parameters and presets (facts/chats 5.1).
import { Type as t } from "@sinclair/typebox";
import { defineTool } from "../tool.ts";
import description from "./read-template.txt" with { type: "text" };

export const readTemplate = defineTool({
  name: "read_template",
  description,
  changes_nothing: true,
  only_reads: true,
  input_schema: t.Object({ template_id: t.String({ minLength: 1 }) }, { additionalProperties: false }),
  run: ({ services }, { template_id }) => services.readTemplate(template_id),
});
