// The tool `create_workspace`: creates a workspace for the chat, once (facts/chats 5.1).
import { Type as t } from "@sinclair/typebox";
import { defineTool } from "../tool.ts";
import description from "./create-workspace.txt" with { type: "text" };

export const createWorkspace = defineTool({
  name: "create_workspace",
  description,
  input_schema: t.Object(
    {
      template_id: t.String({ minLength: 1, description: "The ID from list_templates." }),
      name: t.Optional(
        t.String({ description: "The name: letters, digits and single hyphens. Generated if omitted." }),
      ),
      parameters: t.Optional(t.Record(t.String(), t.String(), { description: "Parameter name and value." })),
      preset_id: t.Optional(t.String({ minLength: 1, description: "The ID from read_template." })),
    },
    { additionalProperties: false },
  ),
  run: ({ services }, input, signal) => services.createWorkspace(input, signal),
});
