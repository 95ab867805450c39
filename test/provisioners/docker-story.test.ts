// A Docker template on a real server, from upload to deletion. The engine is fake, but runs the container's program, which is the real
// daemon, as a process with the container's variables.
import { expect, test } from "bun:test";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { Client } from "#src/client.ts";
import { type FakeContainer, FakeDocker } from "#test/support/docker/fake-docker.ts";
import { findFreePort } from "#test/support/net/free-port.ts";
import { tempDirectory } from "#test/support/server.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { makeKey, startWorker } from "#test/support/worker.ts";
import { awaitBuild, awaitWorkspace, createBuild, createWorkspace, openWorld } from "#test/support/workspaces.ts";

const MAIN = fileURLToPath(new URL("../../src/main.ts", import.meta.url));

const TEMPLATE = `
provisioner: docker
parameters: [{name: image, default: "debian:13"}]
resources:
  - name: dev
    docker:
      image: "{{ parameters.image }}"
      volumes: [{name: home, path: /home/dev}]
    agents:
      - name: main
        scripts: [{display_name: Stop, run_on_stop: true, script: 'sleep 0.2; echo bye; touch "$HOME/stopped"'}]
`;

/** Runs the programs of the containers. */
class ContainerPrograms implements AsyncDisposable {
  readonly #running = new Map<string, Bun.Subprocess>();

  start = (container: FakeContainer, home: string): void => {
    const env = Object.fromEntries(
      container.body.Env.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
    );
    // Containers know this machine by another name.
    const url = (env.SLIPWAY_AGENT_URL ?? "").replace("host.docker.internal", "127.0.0.1");
    const child = Bun.spawn([process.execPath, "--no-env-file", MAIN, "agent"], {
      env: { PATH: process.env.PATH ?? "", HOME: home, ...env, SLIPWAY_AGENT_URL: url },
      stdout: "ignore",
      stderr: "ignore",
    });
    this.#running.set(container.id, child);
  };

  end = ({ id }: FakeContainer): void => {
    this.#running.get(id)?.kill("SIGTERM");
  };

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#running.values()) {
      child.kill("SIGKILL");
      await child.exited;
    }
  }
}

const getAgent = ({ latest_build }: Workspace) => latest_build.resources[0]?.agents?.[0];

test("[PV-1][PV-3][PV-6][WK-26] a container workspace starts, connects, stops, restarts and is deleted", async () => {
  using directory = tempDirectory();
  await using engine = new FakeDocker(directory.path);
  await using programs = new ContainerPrograms();
  const home = join(directory.path, "home");
  mkdirSync(home);
  const program = join(directory.path, "slipway");
  writeFileSync(program, Buffer.concat([Buffer.from("\x7fELF"), Buffer.alloc(14), Buffer.from([62, 0])]));
  engine.onStart = (container) => programs.start(container, home);
  engine.onEnd = programs.end;
  // The compiled program copies itself into the container.
  const binary = process.env.SLIPWAY_TEST_BINARY;
  if (binary && process.arch === "arm64") engine.architecture = "arm64";
  const port = await findFreePort();
  const env = {
    SLIPWAY_ADDRESS: `127.0.0.1:${port}`,
    SLIPWAY_DOCKER_ACCESS_URL: `http://host.docker.internal:${port}`,
    SLIPWAY_DOCKER_HOST: engine.host,
    ...(binary ? {} : { SLIPWAY_AGENT_BINARY: program }),
  };
  await using world = await openWorld({ env });
  const { admin, server } = world;

  const template = await makeTemplate(admin, TEMPLATE);
  const { id } = await createWorkspace(admin, template.id);
  expect((await awaitBuild(admin, id)).latest_build).toMatchObject({ status: "running" });
  const [container] = [...engine.containers.values()];
  expect(container?.body.Env.join()).toContain(`SLIPWAY_AGENT_URL=http://host.docker.internal:${server.url.port}/`);
  expect(container?.uploaded).toBeGreaterThan(binary ? 10_000_000 : 0);
  // A daemon that is only connected may not yet know its scripts, and would run none at the stop.
  const isReady = (workspace: Workspace): boolean => getAgent(workspace)?.lifecycle_state === "ready";
  const connected = await awaitWorkspace(admin, id, isReady);
  const lines = await admin.get<{ output: string }[]>(`/api/v2/workspacebuilds/${connected.latest_build.id}/logs`);
  expect(lines.map(({ output }) => output)).toContain("Fetching the image debian:13.");
  // The name by which containers know this machine is accepted.
  const host = `host.docker.internal:${server.url.port}`;
  expect(
    (await new Client(server.url).fetch("GET", "/api/v2/buildinfo", undefined, { headers: { host } })).status,
  ).toBe(200);

  // The container is stopped once its daemon has ended.
  let daemonHadEnded: boolean | undefined;
  engine.hold = (call) => {
    if (call.endsWith("/stop")) daemonHadEnded = existsSync(join(home, "stopped"));
    return undefined;
  };
  await createBuild(admin, id, "stop");
  await awaitWorkspace(admin, id, ({ latest_build }) => latest_build.status === "stopped");
  expect(daemonHadEnded).toBe(true);
  const agentId = getAgent(connected)?.id;
  expect(await admin.get<object>(`/api/v2/workspaceagents/${agentId}`)).toMatchObject({ lifecycle_state: "off" });
  const scriptLogs = await admin.get<{ output: string }[]>(`/api/v2/workspaceagents/${agentId}/logs`);
  expect(scriptLogs.map(({ output }) => output)).toEqual(["bye"]);
  expect([engine.containers.size, engine.volumes.size]).toEqual([0, 1]);

  await createBuild(admin, id, "start");
  await awaitWorkspace(admin, id, (workspace) => getAgent(workspace)?.status === "connected");
  engine.refuse = (call) => (call.endsWith("/stop") ? { status: 500, message: "device or resource busy" } : undefined);
  await createBuild(admin, id, "delete", { permanent: true });
  const failed = await awaitWorkspace(admin, id, ({ latest_build }) => latest_build.status === "failed");
  expect(failed.latest_build.job.error).toBe("The Docker Engine could not stop the container: device or resource busy");

  engine.refuse = () => undefined;
  await createBuild(admin, id, "delete", { permanent: true });
  await awaitWorkspace(admin, id, ({ latest_build }) => latest_build.status === "deleted");
  expect([engine.containers.size, engine.volumes.size]).toEqual([0, 0]);
});

test("[PV-9] a worker creates containers on its own engine, and removes them there", async () => {
  using directory = tempDirectory();
  await using engine = new FakeDocker(directory.path);
  const program = join(directory.path, "slipway");
  writeFileSync(program, Buffer.concat([Buffer.from("\x7fELF"), Buffer.alloc(14), Buffer.from([62, 0])]));
  await using world = await openWorld({ env: { SLIPWAY_DOCKER_HOST: "unix:///nowhere/docker.sock" } });
  const { admin, server } = world;
  const { key } = await makeKey(admin);
  await using worker = startWorker({
    url: server.url,
    key,
    name: "boxes",
    directory: directory.path,
    kinds: "docker",
    env: { SLIPWAY_WORKER_DOCKER_HOST: engine.host, SLIPWAY_WORKER_AGENT_BINARY: program },
  });
  await worker.connected();
  const manifest = TEMPLATE.replace("provisioner: docker", "provisioner: external\nexternal: {provisioner: docker}");
  const template = await makeTemplate(admin, manifest);
  const { id } = await createWorkspace(admin, template.id);
  const { latest_build } = await awaitBuild(admin, id);
  expect([latest_build.status, latest_build.job.error, latest_build.job.worker_name]).toEqual([
    "running",
    undefined,
    "boxes",
  ]);
  expect([engine.containers.size, engine.volumes.size]).toEqual([1, 1]);
  await createBuild(admin, id, "delete", { permanent: true });
  await awaitWorkspace(admin, id, (workspace) => workspace.latest_build.status === "deleted");
  expect([engine.containers.size, engine.volumes.size]).toEqual([0, 0]);
});
