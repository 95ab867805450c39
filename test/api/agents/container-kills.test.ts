// A container that the kernel killed for memory, in the API, the agent's log and notifications.
import { expect, test } from "bun:test";
import { noteContainerKill } from "#domain/agents/container-kills.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { forFile } from "#test/support/for-file.ts";
import { until } from "#test/support/until.ts";
import { awaitBuild, createWorkspace, ECHO, openWorld, seedTemplate } from "#test/support/workspaces.ts";

const world = await forFile(openWorld());
const { admin, server } = world;

test("[AG-26] a container killed for memory appears once in the agent's resources, its log and the owner's notifications", async () => {
  const { context } = server;
  if (!context) throw new Error("the server does not run in this process");
  const { template_id } = await seedTemplate(server, {
    ...ECHO,
    resources: [...ECHO.resources, { name: "db", agents: [{ name: "side", os: "linux", arch: "amd64" }] }],
  });
  const { id } = await createWorkspace(admin, template_id);
  await awaitBuild(admin, id);
  const killed_at = Date.now() - 5_000;
  const kill = { workspace_id: id, resource: "db", killed_at };
  for (let i = 0; i < 2; i++) await noteContainerKill(context, kill);
  await noteContainerKill(context, { workspace_id: crypto.randomUUID(), resource: "db", killed_at });
  const { latest_build } = await admin.get<Workspace>(`/api/v2/workspaces/${id}`);
  const agents = latest_build.resources.flatMap(({ agents = [] }) => agents);
  const killedProcesses = agents.map(({ name, resources }) => [
    name,
    resources?.memory_kills.map(({ process }) => process),
  ]);
  expect(killedProcesses.sort()).toEqual([
    ["dev", undefined],
    ["side", ["container db"]],
  ]);
  const agentId = agents.find(({ name }) => name === "side")?.id;
  const lines = await admin.get<{ output: string }[]>(`/api/v2/workspaceagents/${agentId}/logs`);
  expect(lines.map(({ output }) => output)).toEqual([
    "Out of memory: the kernel killed the container db, which reached its memory limit.",
  ]);
  const inbox = await until(async () => {
    const { notifications } = await admin.get("/api/v2/notifications/inbox");
    return notifications.length > 0 && (notifications as { title: string; content: string }[]);
  });
  expect(inbox.map(({ title, content }) => [title, content])).toEqual([
    [
      "dev ran out of memory",
      "The kernel killed container db. Run fewer programs at a time, or give the workspace more memory.",
    ],
  ]);
});
