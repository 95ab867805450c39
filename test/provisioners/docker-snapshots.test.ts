// Snapshots of a container's volumes in a real Docker Engine, while a program in the container writes.
import { afterAll, expect } from "bun:test";
import { join } from "node:path";
import { SnapshotRunner } from "#actors/workspace/snapshot-runner.ts";
import { systemClock } from "#base/clock.ts";
import { uuid } from "#base/ids.ts";
import { DockerProvisioner } from "#src/provisioners/docker/docker.ts";
import { Engine } from "#src/provisioners/docker/engine.ts";
import type { ProvisionRequest } from "#src/provisioners/provisioner.ts";
import { IMAGE } from "#test/support/docker/docker-world.ts";
import { EngineProxy } from "#test/support/docker/engine-proxy.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { tempDirectory } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";

const signal = new AbortController().signal;
const report = { log: () => {}, timing: () => {}, charge: async () => {} };
const host = needs.docker.file;
const provisioner = new DockerProvisioner({ host, clock: systemClock, accessUrl: () => new URL("http://127.0.0.1:1") });
const engine = new Engine(host, systemClock);

/** Writes the same number to two files, one after the other. */
const WRITE_COMMAND =
  "n=0; while true; do n=$((n+1)); echo $n > /home/dev/t1; mv /home/dev/t1 /home/dev/one; echo $n > /home/dev/t2; mv /home/dev/t2 /home/dev/two; done";

const makeRequest = (
  id: string,
  transition: ProvisionRequest["transition"],
  overrides: Partial<ProvisionRequest> = {},
): ProvisionRequest => ({
  job_id: uuid(),
  build_id: uuid(),
  build_number: 1,
  transition,
  parameters: {},
  state: null,
  workspace: { id, name: "dev" },
  owner: { id: "o", username: "ada", email: "ada@example.com" },
  manifest: {
    provisioner: "docker",
    resources: [
      {
        name: "dev",
        docker: {
          image: IMAGE,
          pull: "never",
          user: "0",
          stop_grace: 0,
          command: ["sh", "-c", WRITE_COMMAND],
          volumes: [{ name: "home", path: "/home/dev" }],
        },
      },
    ],
  },
  agents: [],
  access_url: "http://127.0.0.1:1/",
  ...overrides,
});

const run = (provisionRequest: ProvisionRequest) => provisioner.run(provisionRequest, report, signal);

/** Runs a command in the workspace's container and returns its output. */
const runInContainer = async (id: string, script: string): Promise<string> => {
  const path = `/containers/slipway-${id}-dev/exec`;
  const created = await engine.json<{ Id: string }>("make an exec", "POST", path, {
    body: { Cmd: ["sh", "-c", script], AttachStdout: true, User: "0", Tty: true },
  });
  const response = await fetch(`http://docker/exec/${created?.Id}/start`, {
    method: "POST",
    unix: host.replace("unix://", ""),
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ Detach: false, Tty: true }),
  } as RequestInit);
  return (await response.text()).trim();
};

const countLabeled = async (kind: "volumes" | "containers/json", label: string): Promise<number> => {
  const query = { all: "true", filters: JSON.stringify({ label: [label] }) };
  const found = await engine.json<unknown[] | { Volumes: unknown[] | null }>("list", "GET", `/${kind}`, { query });
  return Array.isArray(found) ? found.length : (found?.Volumes ?? []).length;
};

const ids: string[] = [];
afterAll(async () => {
  if (needs.docker.found) for (const id of ids) await run(makeRequest(id, "delete"));
});

testNeeding(
  [needs.docker],
  "[SN-10][SN-11][SN-15] volumes are copied while containers are paused, restored in one step, forked, and removed with the workspace",
  async () => {
    await engine.connect();
    const [id, fork] = [uuid(), uuid()];
    ids.push(id, fork);
    await run(makeRequest(id, "start"));
    await until(async () => Number(await runInContainer(id, "cat /home/dev/two 2> /dev/null")) > 100, {
      what: "it writes",
    });
    await runInContainer(
      id,
      "ln -s one /home/dev/link; mkdir -m 700 /home/dev/.keys; chown 1000:1000 /home/dev/.keys; echo k > /home/dev/.keys/k; head -c 4000000 /dev/urandom > /home/dev/big; chown 1000:1000 /home/dev; chmod 751 /home/dev",
    );

    const snapshot = { workspace_id: id, snapshot_id: uuid() };
    const { method, bytes } = await provisioner.homes.capture(snapshot, signal);
    expect(method).toBe("volume");
    expect(bytes).toBeGreaterThan(1_000);
    // A repeated capture, as after a crash, replaces the first one.
    await provisioner.homes.capture(snapshot, signal);
    expect(await countLabeled("volumes", `slipway.snapshot_id=${snapshot.snapshot_id}`)).toBe(1);
    expect(await countLabeled("containers/json", `slipway.snapshot_id=${snapshot.snapshot_id}`)).toBe(0);
    const numberBefore = await runInContainer(id, "cat /home/dev/two");
    await until(async () => (await runInContainer(id, "cat /home/dev/two")) !== numberBefore, {
      what: "it to continue",
    });

    await runInContainer(id, "rm -rf /home/dev/.keys /home/dev/link; touch /home/dev/new");
    await run(makeRequest(id, "stop", { restore: snapshot }));
    expect(await countLabeled("volumes", `slipway.workspace_id=${id}`)).toBe(1);
    // The restored workspace starts without a program that writes.
    const startRequest = makeRequest(id, "start");
    const [resource] = startRequest.manifest.resources;
    const quietRequest = {
      ...startRequest,
      manifest: {
        ...startRequest.manifest,
        resources: [
          { ...resource, name: "dev", docker: { ...resource?.docker, image: IMAGE, command: ["sleep", "600"] } },
        ],
      },
    };
    await run(quietRequest);
    const files = await runInContainer(
      id,
      "cd /home/dev; rm -f t1 t2; ls -a; cat .keys/k; stat -c '%u %a' .keys .; stat -c %s big; readlink link",
    );
    expect(files.split(/\s+/)).toEqual([
      ...[".", "..", ".keys", "big", "link", "one", "two"],
      ...["k", "1000", "700", "1000", "751", "4000000", "one"],
    ]);
    const [one, two] = (await runInContainer(id, "cat /home/dev/one /home/dev/two")).split(/\s+/).map(Number);
    expect(Number(one) - Number(two)).toBeOneOf([0, 1]);

    // The archive is the one that a home backup stores.
    const copied = { workspace_id: id, snapshot_id: uuid() };
    const { homes } = provisioner;
    await homes.pack(snapshot, signal, (archive) => homes.unpack(copied, archive, signal));
    await run({ ...quietRequest, workspace: { id: fork, name: "fork" }, restore: copied });
    expect(await runInContainer(fork, "cat /home/dev/.keys/k; stat -c '%u %a' /home/dev")).toBe("k\r\n1000 751");
    await run(makeRequest(fork, "stop"));
    await run({ ...quietRequest, workspace: { id: fork, name: "fork" } });
    expect(await runInContainer(fork, "cat /home/dev/.keys/k")).toBe("k");

    // In the trash, the volume stays.
    const trashed = await run(makeRequest(id, "delete", { keeps_files: true }));
    expect(trashed.kept_bytes).toBeGreaterThan(0);
    expect(await countLabeled("volumes", `slipway.workspace_id=${id}`)).toBe(1);
    expect(await countLabeled("containers/json", `slipway.workspace_id=${id}`)).toBe(0);
    await run(makeRequest(id, "delete"));
    expect(await countLabeled("volumes", `slipway.workspace_id=${id}`)).toBe(0);
    expect(await countLabeled("volumes", `slipway.snapshot_of=${id}`)).toBe(0);
    const missingRestore = run({ ...quietRequest, workspace: { id: fork, name: "fork" }, restore: snapshot });
    expect(missingRestore).rejects.toThrow("The snapshot's files are missing.");
    await missingRestore.catch(() => {});
  },
);

/** Returns a request for a workspace with two volumes. */
const makeTwoVolumeRequest = (
  id: string,
  transition: ProvisionRequest["transition"],
  overrides: Partial<ProvisionRequest> = {},
) => {
  const volumes = [
    { name: "home", path: "/home/dev" },
    { name: "data", path: "/data" },
  ];
  const command = ["sh", "-c", "n=0; while true; do n=$((n+1)); echo $n > /tmp/n; sleep 0.01; done"];
  const docker = { image: IMAGE, pull: "never" as const, user: "0", stop_grace: 0, command, volumes };
  return makeRequest(id, transition, {
    manifest: { provisioner: "docker", resources: [{ name: "dev", docker }] },
    ...overrides,
  });
};

testNeeding(
  [needs.docker],
  "[SN-11][SN-20] an engine failure during a copy leaves nothing behind or paused; a restore swaps all volumes together",
  async () => {
    await engine.connect();
    using temp = tempDirectory();
    using proxy = new EngineProxy(join(temp.path, "engine.sock"), host.replace("unix://", ""));
    const remote = new DockerProvisioner({
      host: proxy.host,
      clock: systemClock,
      accessUrl: () => new URL("http://127.0.0.1:1"),
    });
    const reports: string[] = [];
    const workspaces = { ask: async (_: string, type: string) => void reports.push(type) };
    const snapshots = new SnapshotRunner({
      clock: systemClock,
      provisioners: new Map([["docker", remote]]),
      workspaces: () => workspaces as never,
      fetch: () => Promise.reject(new Error("there are no backups here")),
      module: { load: () => Promise.reject(new Error("there is no module")), loadMade: async () => undefined },
    });
    const id = uuid();
    ids.push(id);
    await run(makeTwoVolumeRequest(id, "start"));
    const write = (word: string): Promise<string> =>
      runInContainer(
        id,
        `for d in /home/dev /data; do echo ${word} > $d/word; head -c 2000000 /dev/urandom > $d/big; done`,
      );
    const readWords = (): Promise<string> => runInContainer(id, "cat /home/dev/word /data/word");
    await write("first");
    const first = { workspace_id: id, snapshot_id: uuid() };
    await provisioner.homes.capture(first, signal);

    // The connection to the engine is lost in the middle of the copy, while the container is paused.
    const interrupted = {
      workspace_id: id,
      snapshot_id: uuid(),
      provisioner: "docker",
      home_backup_id: null,
      owner_id: "someone",
      part: 0,
    };
    const whenCut = proxy.cut({ call: /^PUT .*\/archive$/, moment: "copying" });
    snapshots.capture(interrupted);
    await whenCut;
    await until(() => reports.includes("snapshotFailed"), { what: "the snapshot fails" });
    const readState = async (): Promise<string | undefined> =>
      (await engine.json<{ State: { Status: string } }>("look", "GET", `/containers/slipway-${id}-dev/json`))?.State
        .Status;
    expect(await readState()).toBe("paused");
    proxy.reconnect();
    await until(async () => (await readState()) === "running", { what: "the container to continue" });
    await until(async () => (await countLabeled("volumes", `slipway.snapshot_id=${interrupted.snapshot_id}`)) === 0);
    expect(await countLabeled("containers/json", `slipway.helper_of=${id}`)).toBe(0);
    await snapshots.stop();

    // A restore that is interrupted during its copy changes nothing, and the next build removes its leftovers.
    await write("second");
    const whenRestoreCut = proxy.cut({ call: /^PUT .*\/archive$/, moment: "copying" });
    const failed = remote
      .run(makeTwoVolumeRequest(id, "stop", { restore: first }), report, signal)
      .catch((error: Error) => error.message);
    await whenRestoreCut;
    expect(await failed).toContain("The Docker Engine is not responding");
    proxy.reconnect();
    expect(await countLabeled("volumes", `slipway.workspace_id=${id}`)).toBe(4);
    await run(makeTwoVolumeRequest(id, "start"));
    expect((await readWords()).split(/\s+/)).toEqual(["second", "second"]);
    expect(await countLabeled("volumes", `slipway.workspace_id=${id}`)).toBe(2);

    // A restore that is interrupted between its two volumes has already switched to the new files.
    const whenCutBetween = proxy.cut({ call: /^DELETE \/volumes\//, moment: "after" });
    const finished = remote.run(makeTwoVolumeRequest(id, "stop", { restore: first }), report, signal);
    await whenCutBetween;
    await finished;
    proxy.reconnect();
    expect(await countLabeled("volumes", `slipway.workspace_id=${id}`)).toBe(4);
    await run(makeTwoVolumeRequest(id, "start"));
    expect((await readWords()).split(/\s+/)).toEqual(["first", "first"]);
    expect(await countLabeled("volumes", `slipway.workspace_id=${id}`)).toBe(2);
    await run(makeTwoVolumeRequest(id, "delete"));
    expect(await countLabeled("volumes", `slipway.snapshot_of=${id}`)).toBe(0);
  },
);
