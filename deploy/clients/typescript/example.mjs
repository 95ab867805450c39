// Makes a workspace and a chat that works in it, and prints what both say: node example.mjs TEMPLATE PROMPT.
import { Slipway } from "@slipway/client";

const [, , template_id = "", prompt = ""] = process.argv;
const { SLIPWAY_URL: url = "http://127.0.0.1:7080", SLIPWAY_TOKEN: token = "" } = process.env;
const slipway = new Slipway({ url, token });

const body = { name: "example", template_id };
const {
  id: workspace_id,
  organization_id,
  latest_build,
} = await slipway.createWorkspace({ path: { user: "me" }, body });
for await (const { output } of slipway.followBuildLog(latest_build.id)) console.log(output);

const content = [{ type: "text", text: prompt }];
const chat = await slipway.createChat({ body: { organization_id, workspace_id, content } });
for await (const event of slipway.followChat(chat.id)) {
  if (event.type === "message") {
    console.log(event.message.role, ...event.message.content.map((part) => part.text ?? ""));
  }
  if (event.type === "status" && ["waiting", "requires_action", "error"].includes(event.status.status)) break;
}
