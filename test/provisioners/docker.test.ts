// The provisioner `docker` with a fake engine that speaks the real API on a real socket.
import { afterAll, beforeEach, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "#base/clock.ts";
import { getContainerAccessUrl } from "#base/config.ts";
import type { Manifest } from "#schema/templates/manifest.ts";
import { parseBytes } from "#src/provisioners/docker/container.ts";
import { DockerProvisioner } from "#src/provisioners/docker/docker.ts";
import { Engine } from "#src/provisioners/docker/engine.ts";
import type { ProvisionRequest, Report } from "#src/provisioners/provisioner.ts";
import type { RepositorySources } from "#src/provisioners/repository/sources.ts";
import { FakeDocker } from "#test/support/docker/fake-docker.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { tempDirectory } from "#test/support/server.ts";

const WORKSPACE_ID = "6f1c9f0a-1111-4222-8333-444455556666";
const CONTAINER_NAME = `slipway-${WORKSPACE_ID}-dev`;

const directory = tempDirectory();
const program = join(directory.path, "slipway");
// The file starts like a Linux program for amd64 and continues with filler.
writeFileSync(
  program,
  Buffer.concat([Buffer.from("\x7fELF"), Buffer.alloc(14), Buffer.from([62, 0]), Buffer.alloc(3000, 1)]),
);
afterAll(() => directory[Symbol.dispose]());

const docker: NonNullable<Manifest["resources"][number]["docker"]> = {
  image: "debian:13",
  env: { EDITOR: "vim" },
  labels: { team: "core" },
  volumes: [{ name: "home", path: "/home/dev" }],
  memory: "512m",
  cpus: 1.5,
  network: "lab",
};

const makeRequest = (overrides: Partial<ProvisionRequest> = {}, container = docker): ProvisionRequest => ({
  job_id: "j",
  build_id: "b",
  build_number: 1,
  transition: "start",
  parameters: {},
  state: null,
  workspace: { id: WORKSPACE_ID, name: "My_Space" },
  owner: { id: "o", username: "ada", email: "ada@example.com" },
  manifest: { provisioner: "docker", resources: [{ name: "dev", docker: container, agents: [{ name: "main" }] }] },
  agents: [{ name: "main", id: "a", token: "secret-token" }],
  access_url: "http://127.0.0.1:7080/",
  ...overrides,
});

class RecordedReport implements Report {
  readonly lines: string[] = [];
  readonly actions: string[] = [];
  log(_level: string, _stage: string, output: string): void {
    this.lines.push(output);
  }
  timing({ action }: { action: string }): void {
    this.actions.push(action);
  }
}

let engine: FakeDocker;
let folderCount = 0;

beforeEach(async () => {
  await engine?.[Symbol.asyncDispose]();
  const folder = join(directory.path, String(folderCount++));
  mkdirSync(folder);
  engine = new FakeDocker(folder);
});
afterAll(() => engine[Symbol.asyncDispose]());

type ProvisionerOptions = {
  readonly program?: string | undefined;
  readonly clock?: ManualClock;
  readonly unreachableReason?: string;
  readonly repositories?: RepositorySources;
};

const makeProvisioner = (options: ProvisionerOptions = { program }) =>
  new DockerProvisioner({
    host: engine.host,
    clock: options.clock ?? systemClock,
    accessUrl: () => new URL("http://host.docker.internal:7080/"),
    program: options.program,
    unreachableReason: options.unreachableReason,
    repositories: options.repositories,
  });

const run = (request = makeRequest(), report = new RecordedReport(), signal = new AbortController().signal) =>
  makeProvisioner().run(request, report, signal);

const getOnlyContainer = () => {
  expect(engine.containers.size).toBe(1);
  return [...engine.containers.values()][0] as NonNullable<ReturnType<typeof engine.containers.get>>;
};

test("[PV-1] a start fetches the image, creates volume and container, and installs and starts the daemon", async () => {
  engine.pull = () => [
    { status: "Pulling from library/debian", id: "13" },
    { status: "Downloading", id: "aa", progressDetail: { current: 5, total: 10 } },
    { status: "Pull complete", id: "aa", progressDetail: {} },
    { status: "Pull complete", id: "aa", progressDetail: {} },
    { status: "Status: Downloaded newer image for debian:13" },
  ];
  const report = new RecordedReport();
  await run(makeRequest(), report);
  const { name, body, running, uploaded, file } = getOnlyContainer();
  expect({ name, running, file, blocks: uploaded % 512 }).toEqual({
    name: CONTAINER_NAME,
    running: true,
    file: "opt/slipway/slipway",
    blocks: 0,
  });
  expect(uploaded).toBeGreaterThan(3000);
  expect(body).toMatchObject({
    Image: "debian:13",
    Hostname: "my-space",
    Entrypoint: ["/opt/slipway/slipway", "agent"],
    Env: ["EDITOR=vim", "SLIPWAY_AGENT_TOKEN=secret-token", "SLIPWAY_AGENT_URL=http://host.docker.internal:7080/"],
    Labels: { team: "core", "slipway.workspace_id": WORKSPACE_ID, "slipway.owner": "ada", "slipway.resource": "dev" },
    HostConfig: {
      Memory: 512 * 1024 * 1024,
      NanoCpus: 1.5e9,
      NetworkMode: "lab",
      ExtraHosts: ["host.docker.internal:host-gateway"],
      Mounts: [{ Type: "volume", Source: `slipway-${WORKSPACE_ID}-home`, Target: "/home/dev", ReadOnly: false }],
    },
  });
  expect(engine.volumes.get(`slipway-${WORKSPACE_ID}-home`)).toMatchObject({ "slipway.workspace_id": WORKSPACE_ID });
  expect(report.lines.filter((line) => line === "aa: Pull complete")).toHaveLength(1);
  expect(report.lines).not.toContain("aa: Downloading");
  expect(report.actions).toEqual(["image", "volume", "create", "upload", "run"]);
  expect(JSON.stringify(report.lines)).not.toContain("secret-token");
});

test("[PV-1] a container without an agent runs the template's command; with an agent, an entrypoint runs the daemon", async () => {
  const resources: Manifest["resources"] = [
    { name: "dev", docker: { ...docker, command: ["tini", "--"] }, agents: [{ name: "main" }] },
    { name: "db", docker: { image: "postgres:18", command: ["postgres", "-c", "fsync=off"], env: { A: "1" } } },
  ];
  await run(makeRequest({ manifest: { provisioner: "docker", resources } }));
  const [dev, db] = [...engine.containers.values()];
  expect(dev?.body.Entrypoint).toEqual(["tini", "--", "/opt/slipway/slipway", "agent"]);
  expect(db?.body).toMatchObject({ Cmd: ["postgres", "-c", "fsync=off"], Env: ["A=1"] });
  expect(db).toMatchObject({ uploaded: 0, running: true });
});

test("[PV-2] the pull policy `missing` fetches an image once, `always` each time, and `never` not at all", async () => {
  const countPulls = () => engine.calls.filter((call) => call === "POST /images/create").length;
  await run();
  await run();
  expect(countPulls()).toBe(1);
  await run(makeRequest({}, { ...docker, pull: "always" }));
  expect(countPulls()).toBe(2);
  await expect(run(makeRequest({}, { ...docker, image: "other", pull: "never" }))).rejects.toThrow(
    "pull policy is never",
  );
  expect(countPulls()).toBe(2);
  await run(makeRequest({}, { ...docker, image: "registry:5000/team/dev" }));
  expect([...engine.images.keys()]).toContain("registry:5000/team/dev:latest");
});

test("[RW-31] the server checks an image's registry before the engine fetches the image with the server's token", async () => {
  const clock = new ManualClock();
  const owners: string[] = [];
  const repositories: RepositorySources = {
    open: () => Promise.reject(new Error("there is no repository")),
    loadFeature: () => Promise.reject(new Error("there are no features")),
    fetchPullToken: async (image, owner_id, signal) => {
      owners.push(owner_id);
      if (image.startsWith("10.")) throw new Error("10.1.2.3 is not a public address.");
      if (image.startsWith("slow.")) {
        clock.advance(5 * 60_000);
        signal.throwIfAborted();
      }
      return image === "debian:13" ? undefined : `for ${image}`;
    },
  };
  const checkingProvisioner = makeProvisioner({ program, clock, repositories });
  const start = (image: string, overrides: Partial<ProvisionRequest> = {}) =>
    checkingProvisioner.run(
      makeRequest(overrides, { ...docker, image }),
      new RecordedReport(),
      new AbortController().signal,
    );
  await expect(start("10.1.2.3:5000/x")).rejects.toThrow("10.1.2.3 is not a public address.");
  await expect(start("slow.example.com/x")).rejects.toThrow("its registry takes too long to answer.");
  expect([...engine.images.keys()]).toEqual([]);
  await start("debian:13");
  await start("r.example.com/dev:1", { no_user_data: true });
  await start("r.example.com/dev:1");
  expect(engine.registryTokens).toEqual(["for r.example.com/dev:1"]);
  expect(owners).toEqual(["o", "o", "o", ""]);
});

test("[PV-2] refuses an image ID, an ID prefix and a repository's image as a name", async () => {
  const countCreated = () => engine.calls.filter((call) => call.includes("/containers/create")).length;
  const before = countCreated();
  const invalidNames = [
    "c",
    "c2C8",
    `sha256:${"a".repeat(64)}`,
    "slipway-repository:1f",
    "docker.io/library/slipway-repository@sha256:1f",
  ];
  for (const image of invalidNames) {
    await expect(run(makeRequest({}, { ...docker, image, pull: "never" }))).rejects.toThrow(
      /ID of an image|built from repositories/,
    );
  }
  expect(countCreated()).toBe(before);
});

test("[PV-3] a repeated build ends with exactly one new container and the old volume", async () => {
  await run();
  const before = getOnlyContainer().id;
  await run(makeRequest({ agents: [{ name: "main", id: "b", token: "fresh" }] }));
  expect(getOnlyContainer().id).not.toBe(before);
  expect(getOnlyContainer().body.Env).toContain("SLIPWAY_AGENT_TOKEN=fresh");
  expect(engine.volumes.size).toBe(1);
});

test("[PV-3] stop keeps the volume, delete removes container and volume, and both can be repeated", async () => {
  await run();
  engine.containers.set("foreign", {
    ...getOnlyContainer(),
    id: "foreign",
    name: "x",
    body: { ...getOnlyContainer().body, Labels: {} },
  });
  engine.volumes.set("foreign", {});
  for (let i = 0; i < 2; i++) {
    await run(makeRequest({ transition: "stop", agents: [] }));
    expect([...engine.containers.keys()]).toEqual(["foreign"]);
    expect(engine.volumes.size).toBe(2);
  }
  for (let i = 0; i < 2; i++) {
    expect(await run(makeRequest({ transition: "delete", agents: [] }))).toEqual({ state: null });
    expect([...engine.volumes.keys()]).toEqual(["foreign"]);
  }
  expect(engine.calls.findIndex((call) => call.endsWith("/stop"))).toBeLessThan(
    engine.calls.findIndex((call) => call.startsWith("DELETE /containers/")),
  );
});

test("[PV-3] leaves alone a foreign container with a workspace's labels, such as a build step", async () => {
  await run();
  const { body } = getOnlyContainer();
  const Labels = { ...body.Labels, "slipway.stop_grace": "3600" };
  engine.containers.set("step", {
    ...getOnlyContainer(),
    id: "step",
    name: "amazing_chaum",
    body: { ...body, Labels },
  });
  const report = new RecordedReport();
  await run(makeRequest({ transition: "stop", agents: [] }), report);
  expect([...engine.containers.keys()]).toEqual(["step"]);
  expect(report.lines.filter((line) => line.startsWith("Stopping"))).toEqual([
    `Stopping the container ${CONTAINER_NAME}.`,
  ]);
});

test("[PV-4] the build reports the engine's message, and a failed start leaves no container", async () => {
  engine.pull = () => [{ error: "manifest for debian:13 not found" }];
  await expect(run()).rejects.toThrow("The image debian:13 cannot be fetched: manifest for debian:13 not found");
  engine.images.set("debian:13", { architecture: "amd64" });
  engine.refuse = (call) => (call.endsWith("/start") ? { status: 500, message: "no space left on device" } : undefined);
  await run().then(
    () => expect.unreachable(),
    (error) =>
      expect(error).toMatchObject({
        name: "ProvisionError",
        message: "The Docker Engine could not start the container: no space left on device",
      }),
  );
  expect(engine.containers.size).toBe(0);
  expect(engine.volumes.size).toBe(1);
});

test("[PV-17] does not start a container whose password file is a pipe, a device or huge", async () => {
  const [pipe, device, link] = [(1 << 25) | 0o644, (1 << 26) | (1 << 21) | 0o666, (1 << 27) | 0o777];
  const regular = { mode: 0o644, size: 1024, linkTarget: "" };
  const { files } = engine;
  files.set("/etc/passwd", regular).set("/etc/group", { mode: link, size: 11, linkTarget: "/groups" });
  files.set("/groups", { mode: pipe, size: 0, linkTarget: "" });
  await expect(run()).rejects.toThrow("/etc/group of the image debian:13 is not a regular file.");
  expect([engine.containers.size, engine.calls.some((call) => call.endsWith("/start"))]).toEqual([0, false]);
  files.set("/etc/passwd", { mode: device, size: 0, linkTarget: "" });
  await expect(run()).rejects.toThrow("/etc/passwd of the image debian:13 is not a regular file.");
  files.set("/etc/passwd", { ...regular, size: 2 ** 40 });
  await expect(run()).rejects.toThrow("/etc/passwd of the image debian:13 has more than 16 MiB.");
  files.set("/etc/passwd", regular).set("/groups", regular);
  await run();
  expect(getOnlyContainer().running).toBe(true);
});

test("[PV-4] explains what to do when the engine has no free addresses for a network", async () => {
  const message = "could not find an available, non-overlapping IPv4 address pool among the defaults";
  engine.refuse = (call) => (call === "POST /networks/create" ? { status: 404, message } : undefined);
  const { network: _, ...container } = docker;
  const error = await run(makeRequest({}, container)).catch((thrown: Error) => thrown);
  expect(error).toMatchObject({ name: "ProvisionError" });
  expect((error as Error).message).toBe(
    "The Docker Engine has no free addresses for another network. Remove unused networks with `docker network prune`, or add `default-address-pools` to the engine's daemon.json.",
  );
});

test("[PV-4] frees a container name that this workspace uses, and reports any other", async () => {
  engine.images.set("debian:13", { architecture: "amd64" });
  await run();
  const outsider = { ...getOnlyContainer(), body: { ...getOnlyContainer().body, Labels: {} } };
  engine.containers.set(outsider.id, outsider);
  await expect(run()).rejects.toThrow(`The container name "/${CONTAINER_NAME}" is already in use`);
});

test("[PV-4] explains a missing engine, an unusable host and an unsuitable program", async () => {
  const makeProvisionerAt = (host: string) =>
    new DockerProvisioner({ host, clock: systemClock, program, accessUrl: () => new URL("http://x") });
  const { signal } = new AbortController();
  await expect(
    makeProvisionerAt("unix:///nowhere/docker.sock").run(makeRequest(), new RecordedReport(), signal),
  ).rejects.toThrow("The Docker Engine is not responding at unix:///nowhere/docker.sock: there is no such socket");
  const expectedMessage = "The Docker Engine is not responding at tcp://127.0.0.1:1:";
  await expect(
    makeProvisionerAt("tcp://me:hunter2@127.0.0.1:1").run(makeRequest(), new RecordedReport(), signal),
  ).rejects.toThrow(expectedMessage);
  await expect(makeProvisionerAt("ssh://elsewhere").run(makeRequest(), new RecordedReport(), signal)).rejects.toThrow(
    "docker_host cannot be used",
  );
  engine.images.set("debian:13", { architecture: "arm64" });
  await expect(run()).rejects.toThrow("is for arm64, but the daemon program for workspaces is for amd64");
  const runWithout = (program?: string) =>
    makeProvisioner({ program }).run(makeRequest(), new RecordedReport(), signal);
  await expect(runWithout()).rejects.toThrow("bun run build");
  await expect(runWithout(import.meta.path)).rejects.toThrow("is not a Linux program");
  await expect(runWithout("/nowhere/slipway")).rejects.toThrow("cannot be read");
});

test("[CF-18] starts nothing if containers cannot reach the server, and names the setting to change", async () => {
  const unreachableReason = "Containers cannot reach the server. Set address to 0.0.0.0:7080.";
  const building = makeProvisioner({ program, unreachableReason }).run(
    makeRequest(),
    new RecordedReport(),
    new AbortController().signal,
  );
  await expect(building).rejects.toThrow(unreachableReason);
  expect(engine.containers.size).toBe(0);
});

test("[PV-5] a canceled build ends immediately during a slow response and leaves no container", async () => {
  engine.hold = (call) => (call.endsWith("/start") ? new Promise(() => {}) : undefined);
  const cancel = new AbortController();
  const building = run(makeRequest(), new RecordedReport(), cancel.signal);
  await engine.awaitCall("PUT ");
  while (!engine.calls.some((call) => call.endsWith("/start"))) await engine.awaitCall("POST /containers/c1/start");
  cancel.abort(new Error("the build was cancelled"));
  await expect(building).rejects.toThrow("the build was cancelled");
  expect(engine.containers.size).toBe(0);
});

test("[PV-5] gives up on an engine that never responds", async () => {
  const clock = new ManualClock();
  engine.hold = (call) => (call === "GET /_ping" ? new Promise(() => {}) : undefined);
  const connecting = new Engine(engine.host, clock).connect();
  await engine.awaitCall("GET /_ping");
  clock.advance(60_000);
  await expect(connecting).rejects.toThrow("The Docker Engine did not answer within 60 seconds.");
});

test("[PV-6] containers reach the server by the setting, the access URL, or their name for this machine", () => {
  const getUrl = (url: string, setting?: string) =>
    getContainerAccessUrl(setting ? new URL(setting) : undefined, new URL(url)).href;
  expect(getUrl("http://127.0.0.1:7080")).toBe("http://host.docker.internal:7080/");
  expect(getUrl("http://localhost:1")).toBe("http://host.docker.internal:1/");
  expect(getUrl("http://[::1]:1")).toBe("http://host.docker.internal:1/");
  expect(getUrl("https://slipway.example")).toBe("https://slipway.example/");
  expect(getUrl("http://127.0.0.1:7080", "http://172.17.0.1:7080")).toBe("http://172.17.0.1:7080/");
});

test("[PV-1] parses memory sizes in common notations", async () => {
  expect(["512m", "4g", "1.5GiB", "1024", "10 kb"].map(parseBytes)).toEqual([
    2 ** 29,
    2 ** 32,
    1.5 * 2 ** 30,
    1024,
    10240,
  ]);
  expect(() => parseBytes("lots")).toThrow("is not an amount of memory");
  await expect(run(makeRequest({}, { ...docker, memory: "much" }))).rejects.toThrow("much is not an amount of memory");
  await expect(run(makeRequest({}, { ...docker, network: "container:other" }))).rejects.toThrow(
    "is not a network name",
  );
  await expect(run(makeRequest({}, { ...docker, network: "host" }))).rejects.toThrow("cannot use the machine");
  for (const image of ["../containers/x", "a/../../volumes", "a?b", "a//b", "/a"]) {
    await expect(run(makeRequest({}, { ...docker, image }))).rejects.toThrow("is not an image name");
  }
  await expect(run(makeRequest({}, { ...docker, cpus: "-1" }))).rejects.toThrow("is not a number of CPUs");
});

testNeeding(
  [needs.docker],
  "[PV-3] a real engine starts, repeats, stops and deletes a workspace",
  async () => {
    const host = needs.docker.file;
    const realProvisioner = new DockerProvisioner({
      host,
      clock: systemClock,
      accessUrl: () => new URL("http://x"),
      program,
    });
    const id = crypto.randomUUID();
    const resources: Manifest["resources"] = [
      {
        name: "box",
        docker: {
          image: "slipway-test:1",
          command: ["sleep", "600"],
          volumes: [{ name: "v", path: "/v" }],
          stop_grace: 0,
        },
      },
    ];
    const makeTransition = (transition: ProvisionRequest["transition"]) =>
      makeRequest({
        workspace: { id, name: "real" },
        transition,
        manifest: { provisioner: "docker", resources },
        agents: [],
      });
    const realEngine = new Engine(host, systemClock);
    await realEngine.connect();
    const query = { all: "true", filters: JSON.stringify({ label: [`slipway.workspace_id=${id}`] }) };
    const listContainers = async () =>
      (await realEngine.json<{ State: string }[]>("list", "GET", "/containers/json", { query })) ?? [];
    const { signal } = new AbortController();
    for (const transition of ["start", "start", "stop", "start", "delete"] as const) {
      await realProvisioner.run(makeTransition(transition), new RecordedReport(), signal);
      const states = (await listContainers()).map(({ State }) => State);
      expect(states).toEqual(transition === "start" ? ["running"] : []);
    }
  },
  scaleTimeout(300_000),
);
