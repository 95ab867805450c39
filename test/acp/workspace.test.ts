// The workspace of a chat that is led with a coding agent, when it is stopped.
import { expect, test } from "bun:test";
import { systemClock } from "#base/clock.ts";
import type { Chat } from "#schema/chats/chat.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { setAgent } from "#test/support/acp/agent-world.ts";
import { createChat, Follower, sendMessage } from "#test/support/chats.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";
import { awaitBuild, createBuild, createWorkspace, openWorld } from "#test/support/workspaces.ts";
import { messagesOf } from "#test/tools/world.ts";

const TEMPLATE = "provisioner: local\nresources: [{name: a, agents: [{name: main}]}]\n";

test("[CA-15] a message starts a stopped workspace and the chat says so; an agent set up otherwise says what is missing", async () => {
  await using world = await openWorld({ clock: systemClock });
  const { admin: owner } = world;
  await setAgent(world, "test");
  const { id: template, organization_id } = await makeTemplate(owner, TEMPLATE);
  const { id: workspace_id } = await createWorkspace(owner, template);
  await awaitBuild(owner, workspace_id);
  await createBuild(owner, workspace_id, "stop");
  await awaitBuild(owner, workspace_id);
  const status = async () => (await owner.get<Workspace>(`/api/v2/workspaces/${workspace_id}`)).latest_build.status;
  const begin = (text: string, coding_agent: string) =>
    createChat({ owner, organization_id }, text, { workspace_id, coding_agent, permissions: null });
  const chatOf = (id: string) => owner.get<Chat>(`/api/v2/chats/${id}`);

  await setAgent(world, "careful", { display_name: "Careful", starts_workspace: false });
  const careful = await begin("say never", "careful");
  await until(async () => (await chatOf(careful.id)).status === "error");
  expect((await chatOf(careful.id)).last_error?.detail).toBe(
    'Careful needs the workspace "dev", which is stopped. Start it first.',
  );
  expect(await status()).toBe("stopped");

  const { id } = await begin("say hello", "test");
  using follower = await Follower.open(owner, id);
  await follower.until(({ status: now }) => now === "waiting");
  expect(await status()).toBe("running");
  expect((await messagesOf(owner, id)).at(-1)?.content.at(-1)?.text).toBe("hello");
  const warned = follower.events.flatMap((event) => (event.type === "status" ? (event.status.warnings ?? []) : []));
  expect(warned).toContain('Starting workspace "dev".');
  expect((await chatOf(id)).warnings).toEqual([]);
  await sendMessage({ owner }, careful.id, "say now");
  await until(async () => (await messagesOf(owner, careful.id)).at(-1)?.content.at(-1)?.text?.endsWith("now"));
}, 120_000);
