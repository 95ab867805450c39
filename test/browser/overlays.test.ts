// Opens every dialog, menu, palette and suggestion list once, in a real browser.
import { expect } from "bun:test";
import type { Chat } from "#schema/chats/chat.ts";
import type { Template } from "#schema/templates/template.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { openChatServer } from "#test/crash/server-story.ts";
import { TalkingModel } from "#test/support/models/talking-model.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { listPageErrors, runStory } from "./story.ts";

type Ids = Readonly<Record<"workspace" | "agent" | "chat" | "template", string>>;

/** Returns the name of each overlay, its page, and the steps that open it. */
const listOverlays = ({ workspace, agent, chat, template }: Ids): readonly (readonly string[])[] => [
  ["Results", "/", "keys:Control+k", "type:a"],
  ["Show as command", "/", "Show this page's requests as commands"],
  ["Account", "/", "admin"],
  ["More for story", "/workspaces", "More for story"],
  ["Delete story?", "/workspaces", "More for story", "Delete…"],
  ["Terms", "/workspaces", "combobox Filter workspaces", "type:st"],
  ["Save filter", "/workspaces?q=status:running", "Save filter"],
  ["Open story in an editor", `/workspaces/${workspace}`, "Editor"],
  ["Share a port", `/workspaces/${workspace}`, "Share a port"],
  ["Workspace", "/chats", "No workspace"],
  ["Group chats", "/chats", "Group chats"],
  ["Model: coder", `/chats/${chat}`, "coder"],
  ["More for Hello", `/chats/${chat}`, "More for Hello"],
  ["Rename chat", `/chats/${chat}`, "More for Hello", "Rename"],
  ["Delete Hello?", `/chats/${chat}`, "More for Hello", "Delete"],
  ["Suggestions", `/chats/${chat}`, "textbox Message", "type:/"],
  ["Import template", "/templates", "Import template"],
  ["New version of local", `/templates/${template}/versions`, "New version"],
  ["Delete local", `/templates/${template}/settings`, "Delete…"],
  ["More terminal actions", `/terminals/${agent}`, "More terminal actions"],
  ["Export", "/audit", "Export"],
  ["Terms", "/audit", "combobox Filter audit log", "type:ac"],
  ["New task", "/tasks", "New task"],
  ["Invite people", "/admin/people", "Invite people"],
  ["Add user", "/admin/people", "Other ways to add users", "Add user…"],
  ["Roles of grace", "/admin/people", "More for grace", "Roles…"],
  ["Password of grace", "/admin/people", "More for grace", "Set password…"],
  ["Delete grace", "/admin/people", "More for grace", "Delete…"],
  ["Add organization", "/admin/organizations", "Add organization"],
  ["Add a member to Default", "/admin/organizations/default", "Add member"],
  ["Add group", "/admin/organizations/default", "Add group"],
  ["Add provider", "/admin/models", "Add provider"],
  ["Price of coder", "/admin/models", "More for coder", "Price…"],
  ["Requests to coder", "/admin/models", "More for coder", "Requests…"],
  ["Remove coder", "/admin/models", "More for coder", "Remove…"],
  ["Add a model from Coder", "/admin/models", "Add model"],
  ["Add MCP server", "/admin/mcp-servers", "Add MCP server"],
  ["Create worker key", "/admin/workers", "Create key"],
  ["Add application", "/admin/applications", "Add application"],
  ["Add limit", "/admin/budgets", "Add limit"],
  ["Add budget", "/admin/budgets", "Add budget"],
  ["Add announcement", "/admin/appearance", "Add announcement"],
  ["New token", "/account/tokens", "New token"],
  ["Add secret", "/account/secrets", "Add secret"],
  ["Write skill", "/account/skills", "Write skill"],
  ["Regenerate SSH key", "/account/accounts", "Regenerate key"],
];

testNeeding(
  [needs.chromium, needs.node],
  "[WB-84] each dialog, menu and suggestion list opens by keyboard, passes axe-core in light and dark, and traps and restores the focus",
  async () => {
    await using story = await openChatServer(async (_, stack) => {
      const model = stack.use(await TalkingModel.start());
      return `${model.server.url}/v1`;
    });
    const { world, workspace_id, place } = story;
    const { admin, organization_id } = world;
    await admin.post("/api/v2/users", {
      username: "grace",
      email: "grace@example.com",
      password: "nine grey herons at noon",
    });
    const { latest_build } = await admin.get<Workspace>(`/api/v2/workspaces/${workspace_id}`);
    const content = [{ type: "text", text: "Hello" }];
    const chat = await admin.post<Chat>("/api/v2/chats", { organization_id, workspace_id, content });
    const templates = await admin.get<Template[]>("/api/v2/templates");
    const overlays = listOverlays({
      workspace: workspace_id,
      agent: latest_build.resources[0]?.agents[0]?.id ?? "",
      chat: chat.id,
      template: templates.find(({ name }) => name === "local")?.id ?? "",
    });
    const steps = overlays.map(([, ...pageAndSteps]) => pageAndSteps);
    const args = [place.client.url.href, admin.token ?? "", JSON.stringify(steps)];
    const result = await runStory<{ problems: string[]; opened: string[] }>("overlays.mjs", args);
    expect(result.problems).toEqual([]);
    expect(result.opened).toEqual(overlays.map(([name = ""]) => name));
    expect(listPageErrors(result)).toEqual([]);
  },
  scaleTimeout(300_000),
);
