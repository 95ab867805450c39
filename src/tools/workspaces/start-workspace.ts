// The tool `start_workspace`: starts the chat's workspace (facts/chats 5.1).
import { Type as t } from "@sinclair/typebox";
import { defineTool } from "../tool.ts";
import description from "./start-workspace.txt" with { type: "text" };

export const startWorkspace = defineTool({
  name: "start_workspace",
  description,
  input_schema: t.Object(
    { parameters: t.Optional(t.Record(t.String(), t.String(), { description: "Parameter name and new value." })) },
    { additionalProperties: false },
  ),
  run: ({ services }, { parameters = {} }, signal) => services.startWorkspace(parameters, signal),
});
