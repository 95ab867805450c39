// Repository images that are shared through a registry, with a real Docker Engine and a real registry.
import { afterAll, expect, test } from "bun:test";
import { systemClock } from "#base/clock.ts";
import { createTarEnd, createTarEntry, joinStreams } from "#base/program-tar.ts";
import type { RepositoryPlan } from "#schema/templates/repository.ts";
import { DockerProvisioner } from "#src/provisioners/docker/docker.ts";
import { Engine } from "#src/provisioners/docker/engine.ts";
import { ImageRegistry } from "#src/provisioners/docker/registry.ts";
import type { Report } from "#src/provisioners/provisioner.ts";
import type { RepositorySources } from "#src/provisioners/repository/sources.ts";
import { GenuineRegistry, REGISTRY_LOGIN } from "#test/support/docker/registry.ts";
import { forFile } from "#test/support/for-file.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { until } from "#test/support/until.ts";

const REPOSITORY_NAME = "acme/workspaces";
const isReady = needs.docker.found && needs.registry.found;
const registry = isReady ? await forFile(GenuineRegistry.start()) : undefined;
const engine = new Engine(needs.docker.file || "unix:///nowhere", systemClock);
if (isReady) await engine.connect();

/** Returns a repository whose Dockerfile differs from that of every other call. */
const makeRepository = (
  run = "true",
  args: Readonly<Record<string, string>> = {},
  base = "slipway-test:1",
  lastLines = "",
) => {
  const tree = crypto.randomUUID().replaceAll("-", "").padEnd(40, "0");
  const dockerfile = `FROM ${base}\nARG WORD\nRUN echo ${tree} >/tmp/word && ${run}\n${lastLines}`;
  let openedCount = 0;
  const sources: RepositorySources = {
    open: async () => {
      openedCount++;
      const text = new TextEncoder().encode(dockerfile);
      return {
        archive: () => joinStreams([createTarEntry("Dockerfile", text), createTarEnd()]),
        read: async () => dockerfile,
        getObjectId: async () => tree,
        [Symbol.dispose]: () => {},
      };
    },
    loadFeature: () => Promise.reject(new Error("there are no features")),
    fetchPullToken: async () => "none",
  };
  const build = { dockerfile: "Dockerfile", context: "", args, tree, dockerfile_id: tree };
  const plan = { url: "http://git.example.com/app", commit: tree, build, features: [] } as unknown as RepositoryPlan;
  return { sources, plan, countOpened: () => openedCount };
};

class RecordedReport implements Report {
  readonly lines: string[] = [];
  log(_level: string, _stage: string, line: string): void {
    this.lines.push(line);
  }
  timing(): void {}
  yields = 0;
  yieldSlot(): void {
    this.yields += 1;
  }
  get text(): string {
    return this.lines.join("\n");
  }
}

const createdImages: string[] = [];
afterAll(async () => {
  for (const image of createdImages) await removeImage(image);
});

/** Removes every name of an image, so that the engine no longer has the image. */
const removeImage = async (image: string): Promise<void> => {
  type InspectedImage = { RepoTags?: string[] };
  const inspected = await engine.json<InspectedImage>("look", "GET", `/images/${image}/json`, {
    expectedStatuses: [404],
  });
  for (const tag of inspected?.RepoTags ?? []) {
    await engine.json("remove", "DELETE", `/images/${tag}`, { query: { force: "true" }, expectedStatuses: [404] });
  }
};

const { signal } = new AbortController();

const openWorld = (options: { password?: string; repository?: ReturnType<typeof makeRepository> } = {}) => {
  const { repository = makeRepository() } = options;
  const { password = REGISTRY_LOGIN.password } = options;
  const name = `${registry?.host}/${REPOSITORY_NAME}`;
  const provisioner = new DockerProvisioner({
    host: needs.docker.file,
    clock: systemClock,
    accessUrl: () => new URL("http://x"),
    repositories: repository.sources,
    repositoryImages: Number.POSITIVE_INFINITY,
    registry: { name, user: REGISTRY_LOGIN.user, password },
  });
  const build = async (): Promise<{ image: string; text: string; yields: number }> => {
    const report = new RecordedReport();
    const [image = ""] = await provisioner.images.build(repository.plan, "", report, signal);
    createdImages.push(image);
    expect(report.text).not.toContain(password);
    return { image, text: report.text, yields: report.yields };
  };
  const isShared = async (image: string): Promise<boolean> =>
    (await registry?.tags(REPOSITORY_NAME))?.some((tag) => tag.startsWith(image.split(":")[1] ?? "-")) ?? false;
  return { provisioner, repository, build, isShared, [Symbol.dispose]: () => provisioner.stop() };
};

testNeeding([needs.docker], "[RW-13] a plan with forged object IDs builds no image", async () => {
  using world = openWorld();
  const { plan } = world.repository;
  for (const id of ["tree", "dockerfile_id"]) {
    const forged = { ...plan, build: { ...plan.build, [id]: "0".repeat(40) } } as RepositoryPlan;
    const built = world.provisioner.images.build(forged, "", new RecordedReport(), signal);
    await expect(built).rejects.toThrow("names other files than the repository's commit has");
  }
});

testNeeding(
  [needs.docker],
  "[RW-23] [RW-24] build arguments of a repository cannot set proxies, because the engine's layer cache ignores proxies",
  async () => {
    const args = { WORD: "given", http_proxy: "http://evil.test:1", HTTPS_PROXY: "http://evil.test:1" };
    const repository = makeRepository('test "$WORD" = given -a -z "$http_proxy$HTTPS_PROXY"', args);
    using world = openWorld({ repository });
    const { text, yields } = await world.build();
    expect([yields, (await world.build()).yields]).toEqual([1, 0]);
    expect(text).toContain("Ignored build argument http_proxy: proxies are set in the Docker Engine.");
    expect(text).toContain("Ignored build argument HTTPS_PROXY");
  },
);

testNeeding([needs.docker], "[RW-28] a build step has a process limit", async () => {
  const readLimit = "cat /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/pids.max 2>/dev/null";
  const waitForLimit = `for i in $(seq 100); do ${readLimit} | grep -q 4096 && echo limited to 4096 && break; sleep 0.1; done`;
  using world = openWorld({ repository: makeRepository(waitForLimit) });
  expect((await world.build()).text).toContain("\nlimited to 4096");
});

testNeeding(
  [needs.docker],
  "[RW-27] a repository cannot build on a base whose ONBUILD copies from another image",
  async () => {
    const base = "slipway-trigger-test:1";
    const dockerfile = new TextEncoder().encode('FROM slipway-test:1\nONBUILD COPY --"from"=ab / /loot\n');
    const tar = joinStreams([createTarEntry("Dockerfile", dockerfile), createTarEnd()]);
    await engine.lines("build", "POST", "/build", { query: { t: base }, tar }, () => {});
    createdImages.push(base);
    using world = openWorld({ repository: makeRepository("true", {}, base) });
    await expect(world.build()).rejects.toThrow(`The image ${base} has the instruction "ONBUILD COPY`);
  },
);

testNeeding(
  [needs.docker],
  "[RW-31] the engine does not contact a sign-in address that a registry names, and errors do not contain servers' responses",
  async () => {
    const requests: string[] = [];
    using internalServer = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: ({ url }) => {
        requests.push(new URL(url).pathname);
        return new Response("internal page: password=hunter2", { status: 404 });
      },
    });
    const toInternalUrl = (path: string): string => new URL(path, internalServer.url).href;
    using hostileRegistry = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: ({ url }) =>
        url.includes("/moved/")
          ? Response.redirect(toInternalUrl("/moved"), 307)
          : new Response("", {
              status: 401,
              headers: { "www-authenticate": `Bearer realm="${toInternalUrl("/sign-in")}"` },
            }),
    });
    const host = hostileRegistry.url.host;
    for (const [repository, message] of [
      [makeRepository("true", {}, `${host}/a/b:1`), "its registry does not have it, or requires sign-in."],
      [
        makeRepository("true", {}, "slipway-test:1", `COPY --from=${host}/moved/b:1 / /x\n`),
        "answered with status 404.",
      ],
    ] as const) {
      using world = openWorld({ repository });
      await expect(world.build()).rejects.toThrow(message);
    }
    expect(new Set(requests)).toEqual(new Set(["/moved"]));
  },
);

testNeeding(
  [needs.docker, needs.registry],
  "[IB-1] a built image is pushed, and an engine without the image pulls it instead of building it",
  async () => {
    using world = openWorld();
    const first = await world.build();
    expect(first.text).toContain("does not have the image yet");
    expect(first.text).toContain("Pushing the image to the registry");
    await until(() => world.isShared(first.image));
    expect(await world.provisioner.checkRegistry()).toBeUndefined();

    await removeImage(first.image);
    const second = await world.build();
    expect([second.image, world.repository.countOpened()]).toEqual([first.image, 1]);
    expect(second.text).toContain("Pulling the image of the repository from the registry");
    expect(second.text).not.toContain("Pushing");
    expect((await world.build()).text).toBe(`Using the existing image of the repository: ${first.image}.`);
    // Removing the image removes both of its names. Otherwise, its space would not be freed.
    await world.provisioner.images.remove([first.image], signal);
    const remaining = await engine.json("look", "GET", `/images/${first.image}/json`, { expectedStatuses: [404] });
    expect(remaining).toBeUndefined();
  },
);

testNeeding(
  [needs.docker, needs.registry],
  "[IB-2] builds succeed while the registry is down, and the registry check reports the problem",
  async () => {
    using world = openWorld();
    await registry?.stop();
    const { text } = await world.build();
    expect(text).toContain("The image cannot be pulled from the registry");
    expect(text).toContain("Building the image of the repository.");
    expect(await world.provisioner.checkRegistry()).toMatchObject({ kind: "unreachable" });
    await registry?.run();
  },
);

test("[IB-2] a registry that does not answer is skipped for a minute, and a failed push is repeated", async () => {
  const requests: string[] = [];
  let isDown = true;
  using server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch({ method, url }) {
      const path = new URL(url).pathname.replace(/^\/v[\d.]+/, "");
      requests.push(`${method} ${path}`);
      if (path === "/version") return Response.json({ Arch: "amd64" });
      if (path.startsWith("/distribution/"))
        return Response.json({ message: "dial tcp: i/o timeout" }, { status: 500 });
      if (path.endsWith("/push"))
        return Response.json(isDown ? { error: "dial tcp: i/o timeout" } : { status: "pushed" });
      return Response.json({ Id: "i" });
    },
  });
  const clock = new ManualClock();
  const images = new ImageRegistry({ name: "registry.example.com/acme/workspaces" }, clock);
  const report = new RecordedReport();
  const pull = { engine: new Engine(`tcp://127.0.0.1:${server.port}`, clock), clock, report, stage: "", signal };
  const shared = { image: "slipway-repository:1f", key: "1f", digests: [] };
  const countPushes = () => requests.filter((request) => request.endsWith("/push")).length;
  for (let attempt = 0; attempt < 2; attempt++) expect(await images.pull(pull, "1f")).toBeUndefined();
  expect(requests.filter((request) => request.includes("/distribution/")).length).toBe(1);
  expect(report.text).toContain("Skipping the registry registry.example.com, which did not answer a moment ago.");
  clock.advance(60_001);
  await images.pull(pull, "1f");
  expect(requests.filter((request) => request.includes("/distribution/")).length).toBe(2);

  images.pushInBackground(pull, shared);
  await until(() => countPushes() === 1);
  await until(() => {
    images.pushInBackground(pull, shared);
    return report.text.includes("The last try failed: dial tcp: i/o timeout");
  });
  const failedPushes = countPushes();
  isDown = false;
  clock.advance(30_000);
  await until(() => countPushes() > failedPushes);
  images.pushInBackground(pull, {
    image: shared.image,
    key: shared.key,
    digests: ["registry.example.com/acme/workspaces@sha256:1f"],
  });
  images.stop();
});

testNeeding(
  [needs.docker, needs.registry],
  "[IB-3] builds succeed with wrong credentials; the report names the settings, and the engine stores no credentials",
  async () => {
    using world = openWorld({ password: "stale-harbour-12" });
    const { text } = await world.build();
    expect(text).toContain("Check repository_registry_user and repository_registry_password.");
    expect(text).toContain("Building the image of the repository.");
    const problem = await world.provisioner.checkRegistry();
    expect(problem).toMatchObject({ kind: "wrong", message: expect.stringContaining("repository_registry_password") });
    const info = JSON.stringify(await engine.json("ask", "GET", "/info"));
    expect(info).not.toContain("harbour");
  },
);

testNeeding([needs.docker, needs.registry], "[IB-3] templates cannot use images of the registry", async () => {
  using world = openWorld();
  const { build: _, ...planWithoutBuild } = world.repository.plan;
  for (const image of [`${registry?.host}/${REPOSITORY_NAME}`, `${registry?.host}/${REPOSITORY_NAME}:1f-amd64`]) {
    const building = world.provisioner.images.build({ ...planWithoutBuild, image }, "", new RecordedReport(), signal);
    await expect(building).rejects.toThrow("cannot be used by name");
  }
});
