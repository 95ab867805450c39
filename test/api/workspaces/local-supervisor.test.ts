// The server restarts a killed daemon of a local workspace, also after its own restart, and reports it to chats.

import { expect } from "bun:test";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type Clock, systemClock } from "#base/clock.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { findMark, isAlive, type ProcessMark } from "#src/provisioners/local/process-table.ts";
import { createChat } from "#test/support/chats.ts";
import { ScriptedModels } from "#test/support/models/scripted-models.ts";
import { testSingleServer } from "#test/support/one-server.ts";
import { type TestServer, type TestServerOptions, tempDirectory } from "#test/support/server.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";
import { awaitBuild, awaitWorkspace, createBuild, createWorkspace, openWorld } from "#test/support/workspaces.ts";
import { callTools } from "#test/tools/world.ts";

const test = testSingleServer("local");

const TEMPLATE = "provisioner: local\nresources: [{name: a, agents: [{name: main}]}]\n";
const findAgent = ({ latest_build }: Workspace) => latest_build.resources[0]?.agents[0];
const isReady = (workspace: Workspace): boolean =>
  findAgent(workspace)?.lifecycle_state === "ready" && isConnected(workspace);
const isConnected = (workspace: Workspace): boolean => findAgent(workspace)?.status === "connected";

const toRecordPath = (server: TestServer, id: string): string =>
  join(server.directory, "workspaces", id, "daemon.json");
const readDaemonRecord = (server: TestServer, id: string): ProcessMark =>
  JSON.parse(readFileSync(toRecordPath(server, id), "utf8"));

const openReady = async (options: TestServerOptions = {}) => {
  const world = await openWorld(options);
  const { id: template } = await makeTemplate(world.admin, TEMPLATE);
  const { id } = await createWorkspace(world.admin, template);
  await awaitWorkspace(world.admin, id, isReady);
  return { ...world, id };
};

/** Kills the daemon as the kernel would, and waits until its process has ended. */
const killDaemon = async (daemon: ProcessMark): Promise<void> => {
  process.kill(daemon.pid, "SIGKILL");
  await until(() => !isAlive(daemon));
};

/** Waits until another daemon has replaced this one, and returns it. */
const awaitSuccessor = (server: TestServer, id: string, before: ProcessMark): Promise<ProcessMark> =>
  until(() => {
    const current = readDaemonRecord(server, id);
    return current.pid !== before.pid && isAlive(current) && current;
  });

test("[LP-13] a killed daemon restarts automatically, connects as the same agent, and ends with its workspace", async () => {
  await using world = await openReady();
  const { server, admin, id } = world;
  const agent = findAgent(await admin.get<Workspace>(`/api/v2/workspaces/${id}`));
  for (let round = 0; round < 2; round++) {
    const before = readDaemonRecord(server, id);
    await killDaemon(before);
    await awaitSuccessor(server, id, before);
    const reconnected = await awaitWorkspace(admin, id, isConnected);
    expect(findAgent(reconnected)?.id).toBe(agent?.id as string);
  }
  const last = readDaemonRecord(server, id);
  await createBuild(admin, id, "stop");
  expect((await awaitBuild(admin, id)).latest_build.status).toBe("stopped");
  expect(findMark(last.pid)).toBeUndefined();
  expect(() => readDaemonRecord(server, id)).toThrow("ENOENT");
  await createBuild(admin, id, "delete");
  await awaitBuild(admin, id);
});

test("[LP-13] a restarted server supervises the daemons that are still running", async () => {
  using temp = tempDirectory();
  let id = "";
  {
    await using world = await openReady({ directory: temp.path });
    ({ id } = world);
  }
  await using world = await openWorld({ directory: temp.path });
  const before = readDaemonRecord(world.server, id);
  expect(isAlive(before)).toBe(true);
  await killDaemon(before);
  await awaitSuccessor(world.server, id, before);
  await awaitWorkspace(world.admin, id, isConnected);
  await createBuild(world.admin, id, "delete");
  await awaitBuild(world.admin, id);
});

test("[LP-13] [TO-31] when an agent dies, the chat continues after its restart or rebuilds with start_workspace; messages say which", async () => {
  const models = new ScriptedModels();
  let isSupervised = true;
  const every: Clock["every"] = (ms, run) => systemClock.every(ms, () => isSupervised && run());
  await using world = await openReady({ models, clock: { ...systemClock, every } });
  const { server, admin, id } = world;
  const [organization] = await admin.get<{ id: string }[]>("/api/v2/organizations");
  const organization_id = organization?.id ?? "";
  const services = { ...world, models, owner: admin, organization_id };
  await createChat({ owner: admin, organization_id }, "go", { workspace_id: id });
  const first = await callTools(services, await models.next(), ["execute", { command: "echo up", timeout: "60s" }]);
  expect(first.results).toMatchObject([{ output: "up\n" }]);
  // Without this, a busy machine could restart the daemon before the call.
  isSupervised = false;
  await killDaemon(readDaemonRecord(server, id));
  const duringRestart = await callTools(services, first.next, ["execute", { command: "echo never", timeout: "5s" }]);
  expect(JSON.stringify(duringRestart.results)).toContain("the server is starting it again (try 1)");
  isSupervised = true;
  const started = await callTools(services, duringRestart.next, ["start_workspace"]);
  expect(started.results).toMatchObject([{ started: true, status: "running", agent_status: "connected" }]);
  expect(started.results[0]).not.toHaveProperty("rebuilt");

  // Without its record, the server cannot restart the daemon.
  const daemon = readDaemonRecord(server, id);
  rmSync(toRecordPath(server, id));
  await killDaemon(daemon);
  await awaitWorkspace(admin, id, (workspace) => findAgent(workspace)?.status === "disconnected");
  const failedCall = await callTools(services, started.next, ["execute", { command: "echo never", timeout: "5s" }]);
  expect(JSON.stringify(failedCall.results)).toContain("It does not restart automatically: start_workspace rebuilds");
  const rebuilt = await callTools(services, failedCall.next, ["start_workspace"]);
  expect(rebuilt.results).toMatchObject([{ started: true, rebuilt: true, agent_status: "connected" }]);
  const repeatedCall = await callTools(services, rebuilt.next, ["execute", { command: "echo back", timeout: "60s" }]);
  expect(repeatedCall.results).toMatchObject([{ output: "back\n" }]);
  await createBuild(admin, id, "delete");
  await awaitBuild(admin, id);
});
