// The tool `stop_workspace`: stops the chat's workspace (facts/chats 5.1).
import { Type as t } from "@sinclair/typebox";
import { defineTool } from "../tool.ts";
import description from "./stop-workspace.txt" with { type: "text" };

export const stopWorkspace = defineTool({
  name: "stop_workspace",
  description,
  input_schema: t.Object({}, { additionalProperties: false }),
  run: ({ services }, _, signal) => services.stopWorkspace(signal),
});
