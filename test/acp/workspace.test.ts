// A stopped workspace of a chat with a coding agent, and a workspace that is no longer shared with the chat's owner.
import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "#base/clock.ts";
import type { Chat } from "#schema/chats/chat.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { Client } from "#src/client.ts";
import { configureAgent } from "#test/support/acp/agent-world.ts";
import { createChat, Follower, sendMessage } from "#test/support/chats.ts";
import { ScriptedModels } from "#test/support/models/scripted-models.ts";
import { seedUser } from "#test/support/seed.ts";
import { tempDirectory } from "#test/support/server.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";
import { awaitBuild, awaitWorkspace, createBuild, createWorkspace, openWorld } from "#test/support/workspaces.ts";
import { listMessages } from "#test/tools/world.ts";

const TEMPLATE = "provisioner: local\nresources: [{name: a, agents: [{name: main}]}]\n";

test("[CA-15] a message starts a stopped workspace and the chat shows it, unless the agent is configured not to start it", async () => {
  await using world = await openWorld({ clock: systemClock });
  const { admin: owner } = world;
  await configureAgent(world, "test");
  const { id: template_id, organization_id } = await makeTemplate(owner, TEMPLATE);
  const { id: workspace_id } = await createWorkspace(owner, template_id);
  await awaitBuild(owner, workspace_id);
  await createBuild(owner, workspace_id, "stop");
  await awaitBuild(owner, workspace_id);
  const getWorkspaceStatus = async () =>
    (await owner.get<Workspace>(`/api/v2/workspaces/${workspace_id}`)).latest_build.status;
  const startChat = (text: string, coding_agent: string) =>
    createChat({ owner, organization_id }, text, { workspace_id, coding_agent, permissions: null });
  const getChat = (id: string) => owner.get<Chat>(`/api/v2/chats/${id}`);

  await configureAgent(world, "careful", { display_name: "Careful", starts_workspace: false });
  const careful = await startChat("say never", "careful");
  await until(async () => (await getChat(careful.id)).status === "error");
  expect((await getChat(careful.id)).last_error?.detail).toBe(
    'Careful needs the workspace "dev", which is stopped. Start it first.',
  );
  expect(await getWorkspaceStatus()).toBe("stopped");

  const { id } = await startChat("say hello", "test");
  using follower = await Follower.open(owner, id);
  await follower.until(({ status }) => status === "waiting");
  expect(await getWorkspaceStatus()).toBe("running");
  expect((await listMessages(owner, id)).at(-1)?.content.at(-1)?.text).toBe("hello");
  const warnings = follower.events.flatMap((event) => (event.type === "status" ? (event.status.warnings ?? []) : []));
  expect(warnings).toContain('Starting workspace "dev".');
  expect((await getChat(id)).warnings).toEqual([]);
  await sendMessage({ owner }, careful.id, "say now");
  await until(async () => (await listMessages(owner, careful.id)).at(-1)?.content.at(-1)?.text?.endsWith("now"));
});

test("[CA-20] ends a chat's processes in a workspace when its owner loses access", async () => {
  const models = new ScriptedModels();
  await using world = await openWorld({ clock: systemClock, models });
  using folder = tempDirectory();
  await configureAgent(world, "test");
  const { id: template_id, organization_id } = await makeTemplate(world.admin, TEMPLATE);
  const { id: workspace_id } = await createWorkspace(world.admin, template_id);
  const eve = await seedUser(world.server, { organization_id });
  const shareAs = (role: string) =>
    world.admin.patch(`/api/v2/workspaces/${workspace_id}/acl`, { user_roles: { [eve.user_id]: role } });
  const hasConnectedAgent = ({ latest_build }: Workspace) =>
    latest_build.resources.some(({ agents }) => agents.some(({ status }) => status === "connected"));
  await awaitWorkspace(world.admin, workspace_id, hasConnectedAgent);
  await shareAs("use");
  const owner = new Client(world.server.url, eve.token);
  const startChat = (text: string, fields: Record<string, unknown>) =>
    createChat({ owner, organization_id }, text, { workspace_id, permissions: null, ...fields });
  const writePidCommand = (file: string, pid: string) => `echo ${pid} > ${join(folder.path, file)}`;
  const readPid = async (file: string): Promise<number> => {
    const path = join(folder.path, file);
    await until(() => existsSync(path) && readFileSync(path, "utf8").endsWith("\n"));
    return Number(readFileSync(path, "utf8"));
  };

  const idle = await startChat(`free ${writePidCommand("idle", "$PPID")}`, { coding_agent: "test" });
  const busy = await startChat(`free ${writePidCommand("busy", "$PPID")}; sleep 1000`, { coding_agent: "test" });
  const withModel = await startChat("go", {});
  const modelCall = await models.next();
  modelCall.callTool("call", "execute", {
    command: `${writePidCommand("model", "$$")}; exec sleep 1000`,
    timeout: "1h",
  });
  modelCall.finish("tool_calls");
  const getChat = (id: string) => owner.get<Chat>(`/api/v2/chats/${id}`);
  await until(async () => (await getChat(idle.id)).status === "waiting");
  const pids = await Promise.all(["idle", "busy", "model"].map(readPid));
  expect(pids.map(isRunning)).toEqual([true, true, true]);
  await shareAs("");
  await until(() => !pids.some(isRunning));
  for (const { id } of [busy, withModel]) await until(async () => (await getChat(id)).status === "waiting");
});

const isRunning = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};
