// Snapshots of a container's volumes in a real Docker Engine, while a program in it writes.
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

/** The same number in two files, one after the other. */
const WRITES =
  "n=0; while true; do n=$((n+1)); echo $n > /home/dev/t1; mv /home/dev/t1 /home/dev/one; echo $n > /home/dev/t2; mv /home/dev/t2 /home/dev/two; done";

const request = (
  id: string,
  transition: ProvisionRequest["transition"],
  more: Partial<ProvisionRequest> = {},
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
          command: ["sh", "-c", WRITES],
          volumes: [{ name: "home", path: "/home/dev" }],
        },
      },
    ],
  },
  agents: [],
  access_url: "http://127.0.0.1:1/",
  ...more,
});

const run = (one: ProvisionRequest) => provisioner.run(one, report, signal);

/** Runs a command in the workspace's container and returns its output. */
const inside = async (id: string, script: string): Promise<string> => {
  const path = `/containers/slipway-${id}-dev/exec`;
  const created = await engine.json<{ Id: string }>("make an exec", "POST", path, {
    body: { Cmd: ["sh", "-c", script], AttachStdout: true, User: "0", Tty: true },
  });
  const answer = await fetch(`http://docker/exec/${created?.Id}/start`, {
    method: "POST",
    unix: host.replace("unix://", ""),
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ Detach: false, Tty: true }),
  } as RequestInit);
  return (await answer.text()).trim();
};

const countLabeled = async (kind: "volumes" | "containers/json", label: string): Promise<number> => {
  const query = { all: "true", filters: JSON.stringify({ label: [label] }) };
  const found = await engine.json<unknown[] | { Volumes: unknown[] | null }>("list", "GET", `/${kind}`, { query });
  return Array.isArray(found) ? found.length : (found?.Volumes ?? []).length;
};

const ids: string[] = [];
afterAll(async () => {
  if (needs.docker.found) for (const id of ids) await run(request(id, "delete"));
});

testNeeding(
  [needs.docker],
  "[SN-10][SN-11][SN-15] volumes are copied while the containers are paused; a restore swaps them in one step, another workspace can use the files, and deleting the workspace removes everything",
  async () => {
    await engine.connect();
    const [id, fork] = [uuid(), uuid()];
    ids.push(id, fork);
    await run(request(id, "start"));
    await until(async () => Number(await inside(id, "cat /home/dev/two 2> /dev/null")) > 100, { what: "it writes" });
    await inside(
      id,
      "ln -s one /home/dev/link; mkdir -m 700 /home/dev/.keys; chown 1000:1000 /home/dev/.keys; echo k > /home/dev/.keys/k; head -c 4000000 /dev/urandom > /home/dev/big; chown 1000:1000 /home/dev; chmod 751 /home/dev",
    );

    const snapshot = { workspace_id: id, snapshot_id: uuid() };
    const { method, bytes } = await provisioner.homes.capture(snapshot, signal);
    expect(method).toBe("volume");
    expect(bytes).toBeGreaterThan(1_000);
    // Repeated, as after a crash, it is made again and there is only one.
    await provisioner.homes.capture(snapshot, signal);
    expect(await countLabeled("volumes", `slipway.snapshot_id=${snapshot.snapshot_id}`)).toBe(1);
    expect(await countLabeled("containers/json", `slipway.snapshot_id=${snapshot.snapshot_id}`)).toBe(0);
    const seen = await inside(id, "cat /home/dev/two");
    await until(async () => (await inside(id, "cat /home/dev/two")) !== seen, { what: "it to continue" });

    await inside(id, "rm -rf /home/dev/.keys /home/dev/link; touch /home/dev/new");
    await run(request(id, "stop", { restore: snapshot }));
    expect(await countLabeled("volumes", `slipway.workspace_id=${id}`)).toBe(1);
    // The earlier files: started without a program that writes.
    const still = request(id, "start");
    const [resource] = still.manifest.resources;
    const quiet = {
      ...still,
      manifest: {
        ...still.manifest,
        resources: [
          { ...resource, name: "dev", docker: { ...resource?.docker, image: IMAGE, command: ["sleep", "600"] } },
        ],
      },
    };
    await run(quiet);
    const files = await inside(
      id,
      "cd /home/dev; rm -f t1 t2; ls -a; cat .keys/k; stat -c '%u %a' .keys .; stat -c %s big; readlink link",
    );
    expect(files.split(/\s+/)).toEqual([
      ...[".", "..", ".keys", "big", "link", "one", "two"],
      ...["k", "1000", "700", "1000", "751", "4000000", "one"],
    ]);
    const [one, two] = (await inside(id, "cat /home/dev/one /home/dev/two")).split(/\s+/).map(Number);
    expect(Number(one) - Number(two)).toBeOneOf([0, 1]);

    // Through an archive, as a home backup stores it.
    const copied = { workspace_id: id, snapshot_id: uuid() };
    const { homes } = provisioner;
    await homes.pack(snapshot, signal, (packed) => homes.unpack(copied, packed, signal));
    await run({ ...quiet, workspace: { id: fork, name: "fork" }, restore: copied });
    expect(await inside(fork, "cat /home/dev/.keys/k; stat -c '%u %a' /home/dev")).toBe("k\r\n1000 751");
    await run(request(fork, "stop"));
    await run({ ...quiet, workspace: { id: fork, name: "fork" } });
    expect(await inside(fork, "cat /home/dev/.keys/k")).toBe("k");

    // In the trash, both stay.
    const kept = await run(request(id, "delete", { keeps_files: true }));
    expect(kept.kept_bytes).toBeGreaterThan(0);
    expect(await countLabeled("volumes", `slipway.workspace_id=${id}`)).toBe(1);
    expect(await countLabeled("containers/json", `slipway.workspace_id=${id}`)).toBe(0);
    await run(request(id, "delete"));
    expect(await countLabeled("volumes", `slipway.workspace_id=${id}`)).toBe(0);
    expect(await countLabeled("volumes", `slipway.snapshot_of=${id}`)).toBe(0);
    const lost = run({ ...quiet, workspace: { id: fork, name: "fork" }, restore: snapshot });
    expect(lost).rejects.toThrow("The snapshot's files are missing.");
    await lost.catch(() => {});
  },
);

/** A program that counts, or does nothing, in a workspace with two volumes. */
const makeTwoVolumeRequest = (
  id: string,
  transition: ProvisionRequest["transition"],
  more: Partial<ProvisionRequest> = {},
) => {
  const volumes = [
    { name: "home", path: "/home/dev" },
    { name: "data", path: "/data" },
  ];
  const command = ["sh", "-c", "n=0; while true; do n=$((n+1)); echo $n > /tmp/n; sleep 0.01; done"];
  const docker = { image: IMAGE, pull: "never" as const, user: "0", stop_grace: 0, command, volumes };
  return request(id, transition, {
    manifest: { provisioner: "docker", resources: [{ name: "dev", docker }] },
    ...more,
  });
};

testNeeding(
  [needs.docker],
  "[SN-11][SN-20] an engine that becomes unreachable during a copy leaves nothing behind and nothing paused; a restore of several volumes swaps all of them together",
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
      inside(id, `for d in /home/dev /data; do echo ${word} > $d/word; head -c 2000000 /dev/urandom > $d/big; done`);
    const readWords = (): Promise<string> => inside(id, "cat /home/dev/word /data/word");
    await write("first");
    const first = { workspace_id: id, snapshot_id: uuid() };
    await provisioner.homes.capture(first, signal);

    // The engine is lost in the middle of the copy, while the container is paused for it.
    const lost = {
      workspace_id: id,
      snapshot_id: uuid(),
      provisioner: "docker",
      home_backup_id: null,
      owner_id: "someone",
      part: 0,
    };
    const cut = proxy.cut({ call: /^PUT .*\/archive$/, moment: "copying" });
    snapshots.capture(lost);
    await cut;
    await until(() => reports.includes("snapshotFailed"), { what: "the snapshot fails" });
    const state = async (): Promise<string | undefined> =>
      (await engine.json<{ State: { Status: string } }>("look", "GET", `/containers/slipway-${id}-dev/json`))?.State
        .Status;
    expect(await state()).toBe("paused");
    proxy.reconnect();
    await until(async () => (await state()) === "running", { what: "the container to continue" });
    await until(async () => (await countLabeled("volumes", `slipway.snapshot_id=${lost.snapshot_id}`)) === 0);
    expect(await countLabeled("containers/json", `slipway.helper_of=${id}`)).toBe(0);
    await snapshots.stop();

    // A restore that is interrupted during its copy changes nothing, and the next build removes its leftovers.
    await write("second");
    const isCut = proxy.cut({ call: /^PUT .*\/archive$/, moment: "copying" });
    const failed = remote
      .run(makeTwoVolumeRequest(id, "stop", { restore: first }), report, signal)
      .catch((error: Error) => error.message);
    await isCut;
    expect(await failed).toContain("The Docker Engine is not responding");
    proxy.reconnect();
    expect(await countLabeled("volumes", `slipway.workspace_id=${id}`)).toBe(4);
    await run(makeTwoVolumeRequest(id, "start"));
    expect((await readWords()).split(/\s+/)).toEqual(["second", "second"]);
    expect(await countLabeled("volumes", `slipway.workspace_id=${id}`)).toBe(2);

    // One that is interrupted between its two volumes has already switched.
    const isBetween = proxy.cut({ call: /^DELETE \/volumes\//, moment: "after" });
    const done = remote.run(makeTwoVolumeRequest(id, "stop", { restore: first }), report, signal);
    await isBetween;
    await done;
    proxy.reconnect();
    expect(await countLabeled("volumes", `slipway.workspace_id=${id}`)).toBe(4);
    await run(makeTwoVolumeRequest(id, "start"));
    expect((await readWords()).split(/\s+/)).toEqual(["first", "first"]);
    expect(await countLabeled("volumes", `slipway.workspace_id=${id}`)).toBe(2);
    await run(makeTwoVolumeRequest(id, "delete"));
    expect(await countLabeled("volumes", `slipway.snapshot_of=${id}`)).toBe(0);
  },
);
