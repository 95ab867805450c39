// Abandoned daemons, with real processes: they exit when their folder or token file no longer exists, or when their server has been
// unreachable for too long.
import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { waitUntilOrphaned } from "#src/daemon/orphan.ts";
import { isAlive, type ProcessMark } from "#src/provisioners/local/process-table.ts";
import { command } from "#test/crash/server.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { startTestServer, type TestServerOptions, tempDirectory } from "#test/support/server.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";
import { awaitBuild, awaitWorkspace, createBuild, createWorkspace, openWorld } from "#test/support/workspaces.ts";

const TEMPLATE = "provisioner: local\nresources: [{name: a, agents: [{name: main}]}]\n";
const isReady = ({ latest_build }: Workspace): boolean =>
  latest_build.resources[0]?.agents[0]?.lifecycle_state === "ready";

const waitUntilGone = async (daemon: ProcessMark): Promise<void> => {
  await until(() => !isAlive(daemon));
};

/** Starts a local workspace, then stops its server. Returns the workspace's daemon and folder. */
const abandonWorkspace = async (options: TestServerOptions & { directory: string }, manifest = TEMPLATE) => {
  await using world = await openWorld(options);
  const { id: template } = await makeTemplate(world.admin, manifest);
  const { id } = await createWorkspace(world.admin, template);
  await awaitWorkspace(world.admin, id, isReady);
  const folder = join(options.directory, "workspaces", id);
  return { id, folder, daemon: JSON.parse(readFileSync(join(folder, "daemon.json"), "utf8")) as ProcessMark };
};

test("[LP-14] a daemon exits when its folder no longer exists", async () => {
  using temp = tempDirectory();
  const { daemon } = await abandonWorkspace({ directory: temp.path });
  expect(isAlive(daemon)).toBe(true);
  rmSync(temp.path, { recursive: true });
  await waitUntilGone(daemon);
});

test("[LP-14] a daemon stops waiting for its stop scripts when its folder is removed", async () => {
  using temp = tempDirectory();
  using marks = tempDirectory();
  const startedFile = join(marks.path, "began");
  const script = `{display_name: Bye, run_on_stop: true, script: "touch ${startedFile}; sleep 1000", timeout: 600}`;
  const manifest = `provisioner: local\nresources: [{name: a, agents: [{name: main, scripts: [${script}]}]}]\n`;
  const { daemon } = await abandonWorkspace({ directory: temp.path }, manifest);
  process.kill(daemon.pid, "SIGTERM");
  await until(() => existsSync(startedFile));
  rmSync(temp.path, { recursive: true });
  await waitUntilGone(daemon);
});

test("[LP-14] a daemon exits after its timeout while its server is down; the server restarts it later", async () => {
  using temp = tempDirectory();
  const env = { SLIPWAY_LOCAL_DAEMON_ORPHAN_TIMEOUT: "2s" };
  const { id, daemon } = await abandonWorkspace({ directory: temp.path, env });
  await waitUntilGone(daemon);
  await using world = await openWorld({ directory: temp.path, env });
  await awaitWorkspace(
    world.admin,
    id,
    ({ latest_build }) => latest_build.resources[0]?.agents[0]?.status === "connected",
  );
  await createBuild(world.admin, id, "delete");
  await awaitBuild(world.admin, id);
});

test("[LP-14] a daemon exits when its token file no longer exists", async () => {
  using temp = tempDirectory();
  await using server = await startTestServer();
  const token = join(temp.path, "token");
  writeFileSync(token, crypto.randomUUID());
  const home = join(temp.path, "home");
  mkdirSync(home);
  const child = Bun.spawn([...command(), "agent", `--url=${server.url.href}`, `--token-file=${token}`], {
    env: { PATH: process.env.PATH, HOME: home },
    stdout: "ignore",
    stderr: "pipe",
  });
  const reader = child.stderr
    .pipeThrough(new TextDecoderStream() as never)
    .getReader() as ReadableStreamDefaultReader<string>;
  let logged = "";
  while (!logged.includes("not connected")) logged += (await reader.read()).value ?? "";
  renameSync(token, `${token}.old`);
  for (;;) {
    const { value, done } = await reader.read();
    logged += value ?? "";
    if (done) break;
  }
  expect(await child.exited).toBe(0);
  expect(logged).toContain("was removed");
});

/** Advances the clock in steps of a second, so that waiting code can check the time in between. */
const advance = async (clock: ManualClock, ms: number): Promise<void> => {
  for (let passed = 0; passed < ms; passed += 1_000) {
    clock.advance(1_000);
    await new Promise((resolve) => setImmediate(resolve));
  }
};

test("[LP-14] each connection resets the timeout; without a timeout, the daemon waits forever", async () => {
  const clock = new ManualClock();
  const stopping = new AbortController();
  let isConnected = false;
  const deps = { clock, signal: stopping.signal, isConnected: () => isConnected };
  const withoutTimeout = waitUntilOrphaned({ paths: [], timeout_ms: undefined }, deps);
  const withTimeout = waitUntilOrphaned({ paths: [], timeout_ms: 60_000 }, deps);
  await advance(clock, 59_000);
  isConnected = true;
  await advance(clock, 4_000);
  isConnected = false;
  await advance(clock, 58_000);
  expect(await Promise.race([withTimeout, Promise.resolve("waits")])).toBe("waits");
  await advance(clock, 4_000);
  expect(await withTimeout).toEqual({ reason: "the server has been unreachable for too long", isGone: false });
  await advance(clock, 3_600_000);
  expect(await Promise.race([withoutTimeout, Promise.resolve("waits")])).toBe("waits");
  stopping.abort();
  expect(await withoutTimeout).toBeUndefined();
});

test("[LP-14] a daemon that starts after its folder was removed also exits", async () => {
  using temp = tempDirectory();
  const deps = { clock: new ManualClock(), signal: new AbortController().signal, isConnected: () => true };
  const folder = join(temp.path, "none");
  expect(await waitUntilOrphaned({ paths: [folder], timeout_ms: undefined }, deps)).toEqual({
    reason: `${folder} was removed`,
    isGone: true,
  });
});
