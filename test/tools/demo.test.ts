// The demo model in a workspace, which a person without an API key tries first.
import { expect, test } from "bun:test";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { Client } from "#src/client.ts";
import { createChat, Follower } from "#test/support/chats.ts";
import { awaitWorkspace, createWorkspace, openWorld } from "#test/support/workspaces.ts";
import { joinOutput, listMessages } from "./world.ts";

type NamedItem = { id: string; name: string };

test("[TO-13] the demo model runs the command of `run: <command>` in the chat's workspace and shows its output and result", async () => {
  await using world = await openWorld();
  const { admin } = world;
  const local = (await admin.get<NamedItem[]>("/api/v2/templates")).find(({ name }) => name === "local");
  const [organization] = await admin.get<NamedItem[]>("/api/v2/organizations");
  if (!local || !organization) throw new Error("a fresh install has a template and an organization");
  const { id: workspace_id } = await createWorkspace(admin, local.id);
  const isReady = ({ latest_build }: Workspace) => latest_build.resources[0]?.agents[0]?.lifecycle_state === "ready";
  await awaitWorkspace(admin, workspace_id, isReady);
  const owner = new Client(world.server.url, admin.token);
  const author = { owner, organization_id: organization.id };
  const chat = await createChat(author, "run: echo hello there; ls -a", { workspace_id });
  using follower = await Follower.open(owner, chat.id);
  await follower.until(({ status }) => status === "waiting");
  const [prompt, call, result, answer] = await listMessages(owner, chat.id);
  expect(prompt?.content).toMatchObject([{ text: "run: echo hello there; ls -a" }]);
  expect(call?.content).toMatchObject([
    {
      type: "tool-call",
      tool_name: "execute",
      args: { command: "echo hello there; ls -a" },
      parsed_commands: [["echo", "hello"], ["ls"]],
    },
  ]);
  expect(result?.content).toMatchObject([{ type: "tool-result", result: { success: true, exit_code: 0 } }]);
  expect(answer?.content[0]?.text).toContain("hello there\n.\n..\n");
  expect(answer?.content[0]?.text).toContain("Command succeeded.");
  // A follower that connected in time has received the live output.
  if (joinOutput(follower) !== "") expect(joinOutput(follower)).toStartWith("hello there\n");
  const chatWithoutWorkspace = await createChat(author, "run: ls");
  using secondFollower = await Follower.open(owner, chatWithoutWorkspace.id);
  await secondFollower.until(({ status }) => status === "waiting");
  expect((await listMessages(owner, chatWithoutWorkspace.id)).at(-1)?.content[0]?.text).toContain("not bound to one");
});
