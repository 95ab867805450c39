// The tool `computer`: controls the desktop of the workspace, for chats started for that purpose (facts/chats 5.1, 5.2, rules DT-4, DT-5).
// Each screenshot is stored as a file of the chat and shown to the model as an image.
import { Type as t } from "@sinclair/typebox";
import { DESKTOP_FIELDS, type DesktopPicture } from "#schema/agents/desktop-action.ts";
import description from "./computer.txt" with { type: "text" };
import { defineTool, ToolError } from "./tool.ts";

export const computer = defineTool({
  name: "computer",
  description,
  input_schema: t.Object(DESKTOP_FIELDS, { additionalProperties: false }),
  gives_image: true,
  async run({ agent, services, run_id }, args, signal) {
    const json = { ...args, id: run_id };
    const { width, height, image } = await agent.call<DesktopPicture>({
      method: "POST",
      path: "/desktop/action",
      json,
      signal,
      patient: true,
    });
    const bytes = new Uint8Array(Buffer.from(String(image), "base64"));
    if (bytes.byteLength === 0) throw new ToolError("The desktop gave no picture.");
    const { file_id, media_type } = await services.attachFile("screenshot.png", bytes);
    return { action: args.action, image: { file_id, media_type, width, height } };
  },
});
