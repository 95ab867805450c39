// Stop scripts of workspaces that are stopped or deleted: the server stores their output, result and duration, with any provisioner. The
// daemons are real processes.
import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "#base/clock.ts";
import { uuid } from "#base/ids.ts";
import type { WorkspaceAgent } from "#schema/agents/agent.ts";
import type { Manifest } from "#schema/templates/manifest.ts";
import type { BuildTimings } from "#schema/workspaces/build.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { Client } from "#src/client.ts";
import { isAlive } from "#test/daemon/support/daemon.ts";
import { openLocalWorkspaces } from "#test/support/cluster/local-workspaces.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { tempDirectory } from "#test/support/server.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";
import { makeKey, startWorker } from "#test/support/worker.ts";
import {
  awaitBuild,
  awaitWorkspace,
  createBuild,
  createWorkspace,
  openWorld,
  type World,
} from "#test/support/workspaces.ts";
import { startAgentProcess } from "../agents/reach.ts";
import { connectAgent } from "../agents/rpc-agent.ts";

type Script = NonNullable<NonNullable<Manifest["resources"][number]["agents"]>[number]["scripts"]>[number];

const makeStopScript = (script: string, more: Partial<Script> = {}): Script => ({
  display_name: "Stop",
  run_on_stop: true,
  script,
  ...more,
});

const createManifest = (kind: object, scripts: Script[], token?: string): string =>
  JSON.stringify({
    ...kind,
    resources: [{ name: "main", agents: [{ name: "dev", scripts, ...(token ? { token } : {}) }] }],
  });

const findAgent = ({ latest_build }: Workspace): WorkspaceAgent | undefined => latest_build.resources[0]?.agents[0];

/** Creates a workspace from this manifest and waits until its agent is ready. */
const startWorkspace = async ({ admin }: World, manifest: string): Promise<{ id: string; agent: WorkspaceAgent }> => {
  const template = await makeTemplate(admin, manifest);
  const { id } = await createWorkspace(admin, template.id);
  const ready = await awaitWorkspace(admin, id, (workspace) => findAgent(workspace)?.lifecycle_state === "ready");
  const agent = findAgent(ready);
  if (!agent) throw new Error("the workspace has no agent");
  return { id, agent };
};

const loadAgent = (admin: Client, { id }: { id: string }): Promise<WorkspaceAgent> =>
  admin.get<WorkspaceAgent>(`/api/v2/workspaceagents/${id}`);

const listLogLines = async (admin: Client, { id }: { id: string }): Promise<string[]> =>
  (await admin.get<{ output: string }[]>(`/api/v2/workspaceagents/${id}/logs`)).map(({ output }) => output);

/** Stops or deletes the workspace, and returns the build's status and timings. */
const stopAndAwait = async (admin: Client, id: string, transition = "stop") => {
  const build = await createBuild(admin, id, transition);
  const { latest_build } = await awaitBuild(admin, id);
  const timings = await admin.get<BuildTimings>(`/api/v2/workspacebuilds/${build.id}/timings`);
  return { status: latest_build.status, timings };
};

test("[WK-25] [WK-26] a stop waits for the stop scripts of a local workspace and stores their logs, exit codes and timings", async () => {
  await using world = await openWorld();
  await using locals = await openLocalWorkspaces(world);
  const { admin } = world;
  const { id, agent } = await startWorkspace(
    world,
    createManifest(locals.kind, [
      makeStopScript('echo begun; while [ ! -e "$HOME/go" ]; do sleep 0.05; done; echo "ended for $SLIPWAY"'),
    ]),
  );
  const home = join(locals.getFolder(id), "home");
  using follower = await admin.socket(`/api/v2/workspaceagents/${agent.id}/logs?follow=true`);
  await createBuild(admin, id, "stop");
  let lines: string[] = [];
  while (!lines.includes("begun"))
    lines = lines.concat((await follower.json<{ output: string }[]>()).map(({ output }) => output));
  // The agent is still connected, and reports its state.
  const during = await loadAgent(admin, agent);
  expect([during.status, during.lifecycle_state]).toEqual(["connected", "shutting_down"]);
  writeFileSync(join(home, "go"), "");
  expect((await awaitBuild(admin, id)).latest_build.status).toBe("stopped");
  while (!lines.includes("ended for true")) {
    seen: lines = lines.concat((await follower.json<{ output: string }[]>()).map(({ output }) => output));
  }
  const after = await loadAgent(admin, agent);
  expect([after.status, after.lifecycle_state]).toEqual(["disconnected", "off"]);
  expect(after.scripts[0]).toMatchObject({ status: "ok", exit_code: 0 });
  expect(await listLogLines(admin, agent)).toEqual(["begun", "ended for true"]);
  const timings = await admin.get<BuildTimings>(`/api/v2/workspaces/${id}/timings`);
  expect(timings.agent_script_timings).toMatchObject([
    { stage: "stop", status: "ok", exit_code: 0, display_name: "Stop", workspace_agent_name: "dev" },
  ]);
  expect(timings.provisioner_timings.map(({ action }) => action)).toContain("shutdown");
});

test.each([
  ["shutdown_error", makeStopScript("echo oh >&2; exit 3"), { status: "exit_failure", exit_code: 3 }],
  ["shutdown_timeout", makeStopScript("sleep 1000", { timeout: 1 }), { status: "timed_out" }],
] as const)("[WK-26] a delete build also stores %s", async (lifecycle, script, outcome) => {
  await using world = await openWorld();
  await using locals = await openLocalWorkspaces(world);
  const { admin } = world;
  const { id, agent } = await startWorkspace(world, createManifest(locals.kind, [script]));
  const build = await createBuild(admin, id, "delete");
  await awaitWorkspace(admin, id, ({ latest_build }) => latest_build.status === "deleted");
  const timings = await admin.get<BuildTimings>(`/api/v2/workspacebuilds/${build.id}/timings`);
  expect(timings.agent_script_timings).toMatchObject([{ stage: "stop", ...outcome }]);
  // The API does not show agents of deleted workspaces, so read the row.
  const { context } = world.server;
  if (!context) return;
  const sql = "select lifecycle_state from agents where id = ?";
  expect(await context.store.all({ sql, params: [agent.id], map: ([state]) => state })).toEqual([lifecycle]);
});

testInProcess(
  "[WK-26] with echo, the server asks the daemon to shut down, and the daemon exits before the build ends",
  async () => {
    using home = tempDirectory();
    await using world = await openWorld({ clock: systemClock });
    const { admin, server } = world;
    const token = uuid();
    const manifest = createManifest(
      { provisioner: "echo" },
      [makeStopScript('sleep 0.3; touch "$HOME/done"; echo bye')],
      token,
    );
    const template = await makeTemplate(admin, manifest);
    const { id } = await createWorkspace(admin, template.id);
    const running = await awaitBuild(admin, id);
    const agent = findAgent(running) as WorkspaceAgent;
    await using _daemon = await startAgentProcess(server, { agent_id: agent.id, agent_token: token }, home.path);
    await awaitWorkspace(admin, id, (workspace) => findAgent(workspace)?.lifecycle_state === "ready");
    await until(() => server.context?.dialer.isDaemon(agent.id));
    const { status, timings } = await stopAndAwait(admin, id);
    expect(status).toBe("stopped");
    readFileSync(join(home.path, "done"));
    expect((await loadAgent(admin, agent)).lifecycle_state).toBe("off");
    expect(await listLogLines(admin, agent)).toEqual(["bye"]);
    expect(timings.agent_script_timings).toMatchObject([{ stage: "stop", status: "ok" }]);
    // The token is invalid once the build has ended.
    expect(
      (
        await fetch(new URL("/api/v2/workspaceagents/me/gitsshkey", server.url), {
          headers: { "Service-Session-Token": token },
        })
      ).status,
    ).toBe(401);
  },
);

testInProcess(
  "[WK-25] [WK-2] a genuine agent stays authenticated until the stop build ends, and the build does not wait for it",
  async () => {
    await using world = await openWorld({ env: { SLIPWAY_PROVISIONER_SLOTS: "1" } });
    const { admin, server } = world;
    const token = uuid();
    const template = await makeTemplate(
      admin,
      createManifest({ provisioner: "echo" }, [makeStopScript("true")], token),
    );
    const { id } = await createWorkspace(admin, template.id);
    const agent = findAgent(await awaitBuild(admin, id)) as WorkspaceAgent;
    await using genuineAgent = await connectAgent(server, token);
    /** Occupies the only slot of each node. */
    const occupySlots = (run: () => Promise<void>): void => {
      for (const { jobs, clock } of server.contexts)
        jobs.submit({ id: uuid(), created_at: clock.now(), urgency: "person", run });
    };
    const firstSlot = Promise.withResolvers<void>();
    occupySlots(() => firstSlot.promise);
    await createBuild(admin, id, "stop");
    // While the stop build waits for a slot, both endpoints accept the agent's reports.
    await genuineAgent.agent.updateLifecycle({ lifecycle: { state: 6 } });
    expect((await loadAgent(admin, agent)).lifecycle_state).toBe("shutting_down");
    await using secondConnection = await connectAgent(server, token);
    await secondConnection.agent.updateLifecycle({ lifecycle: { state: 9 } });
    expect((await loadAgent(admin, agent)).lifecycle_state).toBe("off");
    firstSlot.resolve();
    expect((await awaitBuild(admin, id)).latest_build.status).toBe("stopped");
    expect(await secondConnection.closed).toMatchObject({ code: 1001 });
    await expect(connectAgent(server, token)).rejects.toThrow();
    // A successful stop has ended the agent: a delete does not let it connect again.
    const secondSlot = Promise.withResolvers<void>();
    occupySlots(() => secondSlot.promise);
    const deleteBuild = await createBuild(admin, id, "delete");
    await expect(connectAgent(server, token)).rejects.toThrow();
    using watcher = await admin.socket(`/api/v2/workspaces/${id}/watch-ws`);
    secondSlot.resolve();
    for (;;) {
      const { type, data } = await watcher.json<{ type: string; data: Workspace }>();
      if (type === "data" && data.latest_build.status === "deleted") break;
    }
    // Data of a deleted workspace is returned if explicitly requested.
    expect((await admin.fetch("GET", `/api/v2/workspaces/${id}/timings`)).status).toBe(410);
    expect((await admin.fetch("GET", `/api/v2/workspaces/${id}/timings?include_deleted=true`)).status).toBe(200);
    expect((await admin.fetch("GET", `/api/v2/workspacebuilds/${deleteBuild.id}/timings`)).status).toBe(200);
  },
);

/** Until disposed, kills each daemon that appears in this record, except the one with the process ID `lastPid`. */
const killReplacements = (recordPath: string, lastPid: number): Disposable => {
  let handledPid = lastPid;
  const timer = setInterval(() => {
    // The file is removed when the workspace ends.
    if (!existsSync(recordPath)) return;
    const { pid } = JSON.parse(readFileSync(recordPath, "utf8")) as { pid: number };
    if (pid === handledPid) return;
    if (isAlive(pid)) process.kill(pid, "SIGKILL");
    handledPid = pid;
  }, 5);
  return { [Symbol.dispose]: () => clearInterval(timer) };
};

test("[WK-27] stopping a workspace does not wait for a daemon that was killed", async () => {
  await using world = await openWorld();
  await using locals = await openLocalWorkspaces(world);
  const { id } = await startWorkspace(
    world,
    createManifest(locals.kind, [makeStopScript("sleep 1000", { timeout: 600 })]),
  );
  const recordPath = join(locals.getFolder(id), "daemon.json");
  const { pid } = JSON.parse(readFileSync(recordPath, "utf8")) as { pid: number };
  process.kill(pid, "SIGKILL");
  // Also kills daemons that the server restarts before the build begins: one that connects would run the script.
  using _ = killReplacements(recordPath, pid);
  const startedAt = performance.now();
  expect((await stopAndAwait(world.admin, id)).status).toBe("stopped");
  expect(performance.now() - startedAt).toBeLessThan(20_000);
});

test("[WK-27] a canceled stop build ends without waiting for the stop script", async () => {
  await using world = await openWorld();
  await using locals = await openLocalWorkspaces(world);
  const { admin } = world;
  const { id, agent } = await startWorkspace(
    world,
    createManifest(locals.kind, [makeStopScript("echo begun; sleep 1000", { timeout: 600 })]),
  );
  using follower = await admin.socket(`/api/v2/workspaceagents/${agent.id}/logs?follow=true`);
  const build = await createBuild(admin, id, "stop");
  while (!(await follower.json<{ output: string }[]>()).some(({ output }) => output === "begun"));
  await admin.patch(`/api/v2/workspacebuilds/${build.id}/cancel`);
  expect((await awaitBuild(admin, id)).latest_build.status).toBe("canceled");
});

test("[WK-26] an external worker gets the job to stop a workspace only after its agent has exited", async () => {
  using directory = tempDirectory();
  await using world = await openWorld();
  const { admin, server } = world;
  const { key } = await makeKey(admin);
  mkdirSync(join(directory.path, "data"));
  await using worker = startWorker({
    url: server.url,
    key,
    name: "far",
    directory: join(directory.path, "data"),
    kinds: "local",
  });
  await worker.connected();
  const kind = { provisioner: "external", external: { provisioner: "local" } };
  const { id, agent } = await startWorkspace(
    world,
    createManifest(kind, [makeStopScript("sleep 0.2; echo bye; exit 4")]),
  );
  const { status, timings } = await stopAndAwait(admin, id);
  expect(status).toBe("stopped");
  expect(await listLogLines(admin, agent)).toEqual(["bye", "The script failed with exit code 4."]);
  expect((await loadAgent(admin, agent)).lifecycle_state).toBe("shutdown_error");
  expect(timings.agent_script_timings).toMatchObject([{ exit_code: 4, status: "exit_failure" }]);
});
