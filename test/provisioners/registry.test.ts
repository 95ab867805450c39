// Repository images shared through a registry: a genuine engine and a genuine registry.
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

const NAME = "acme/workspaces";
const isReady = needs.docker.found && needs.registry.found;
const registry = isReady ? await forFile(GenuineRegistry.start()) : undefined;
const engine = new Engine(needs.docker.file || "unix:///nowhere", systemClock);
if (isReady) await engine.connect();

/** Returns a repository with a Dockerfile that no earlier call returned. */
const newRepository = (
  run = "true",
  args: Readonly<Record<string, string>> = {},
  base = "slipway-test:1",
  more = "",
) => {
  const tree = crypto.randomUUID().replaceAll("-", "").padEnd(40, "0");
  const dockerfile = `FROM ${base}\nARG WORD\nRUN echo ${tree} >/tmp/word && ${run}\n${more}`;
  let opened = 0;
  const sources: RepositorySources = {
    open: async () => {
      opened++;
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
  return { sources, plan, opened: () => opened };
};

class Lines implements Report {
  readonly all: string[] = [];
  log(_level: string, _stage: string, line: string): void {
    this.all.push(line);
  }
  timing(): void {}
  yields = 0;
  yieldSlot(): void {
    this.yields += 1;
  }
  get text(): string {
    return this.all.join("\n");
  }
}

const created: string[] = [];
afterAll(async () => {
  for (const image of created) await removeImage(image);
});

/** Removes every name of an image, so that the engine is like a new one that does not have it. */
const removeImage = async (image: string): Promise<void> => {
  type Found = { RepoTags?: string[] };
  const found = await engine.json<Found>("look", "GET", `/images/${image}/json`, { expectedStatuses: [404] });
  for (const tag of found?.RepoTags ?? []) {
    await engine.json("remove", "DELETE", `/images/${tag}`, { query: { force: "true" }, expectedStatuses: [404] });
  }
};

const { signal } = new AbortController();

const openWorld = (options: { password?: string; repository?: ReturnType<typeof newRepository> } = {}) => {
  const { repository = newRepository() } = options;
  const { password = REGISTRY_LOGIN.password } = options;
  const name = `${registry?.host}/${NAME}`;
  const provisioner = new DockerProvisioner({
    host: needs.docker.file,
    clock: systemClock,
    accessUrl: () => new URL("http://x"),
    repositories: repository.sources,
    repositoryImages: Number.POSITIVE_INFINITY,
    registry: { name, user: REGISTRY_LOGIN.user, password },
  });
  const build = async (): Promise<{ image: string; text: string; yields: number }> => {
    const lines = new Lines();
    const [image = ""] = await provisioner.images.build(repository.plan, "", lines, signal);
    created.push(image);
    expect(lines.text).not.toContain(password);
    return { image, text: lines.text, yields: lines.yields };
  };
  const isShared = async (image: string): Promise<boolean> =>
    (await registry?.tags(NAME))?.some((tag) => tag.startsWith(image.split(":")[1] ?? "-")) ?? false;
  return { provisioner, repository, build, isShared, [Symbol.dispose]: () => provisioner.stop() };
};

testNeeding(
  [needs.docker],
  "[RW-13] no image is built under IDs that a plan's author took from another repository",
  async () => {
    using world = openWorld();
    const { plan } = world.repository;
    for (const id of ["tree", "dockerfile_id"]) {
      const forged = { ...plan, build: { ...plan.build, [id]: "0".repeat(40) } } as RepositoryPlan;
      const built = world.provisioner.images.build(forged, "", new Lines(), signal);
      await expect(built).rejects.toThrow("names other files than the repository's commit has");
    }
  },
);

testNeeding(
  [needs.docker],
  "[RW-23] [RW-24] build arguments of a repository cannot set proxies, which the engine's layer cache would ignore",
  async () => {
    const args = { WORD: "given", http_proxy: "http://evil.test:1", HTTPS_PROXY: "http://evil.test:1" };
    const repository = newRepository('test "$WORD" = given -a -z "$http_proxy$HTTPS_PROXY"', args);
    using world = openWorld({ repository });
    const { text, yields } = await world.build();
    expect([yields, (await world.build()).yields]).toEqual([1, 0]);
    expect(text).toContain("Ignored build argument http_proxy: proxies are set in the Docker Engine.");
    expect(text).toContain("Ignored build argument HTTPS_PROXY");
  },
);

testNeeding([needs.docker], "[RW-28] a build step has a process limit", async () => {
  const find = "cat /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/pids.max 2>/dev/null";
  const waitForLimit = `for i in $(seq 100); do ${find} | grep -q 4096 && echo limited to 4096 && break; sleep 0.1; done`;
  using world = openWorld({ repository: newRepository(waitForLimit) });
  expect((await world.build()).text).toContain("\nlimited to 4096");
});

testNeeding(
  [needs.docker],
  "[RW-27] an image is not built on a base whose ONBUILD copies from another image",
  async () => {
    const base = "slipway-trigger-test:1";
    const dockerfile = new TextEncoder().encode('FROM slipway-test:1\nONBUILD COPY --"from"=ab / /loot\n');
    const tar = joinStreams([createTarEntry("Dockerfile", dockerfile), createTarEnd()]);
    await engine.lines("build", "POST", "/build", { query: { t: base }, tar }, () => {});
    created.push(base);
    using world = openWorld({ repository: newRepository("true", {}, base) });
    await expect(world.build()).rejects.toThrow(`The image ${base} has the instruction "ONBUILD COPY`);
  },
);

testNeeding(
  [needs.docker],
  "[RW-31] the engine sends no request to a sign-in address that a registry names, and errors do not contain the responses of servers",
  async () => {
    const requests: string[] = [];
    using internal = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: ({ url }) => {
        requests.push(new URL(url).pathname);
        return new Response("internal page: password=hunter2", { status: 404 });
      },
    });
    const toInternalUrl = (path: string): string => new URL(path, internal.url).href;
    using evil = Bun.serve({
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
    const host = evil.url.host;
    for (const [repository, message] of [
      [newRepository("true", {}, `${host}/a/b:1`), "its registry does not have it, or requires sign-in."],
      [
        newRepository("true", {}, "slipway-test:1", `COPY --from=${host}/moved/b:1 / /x\n`),
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
  "[IB-1] an image is pushed once it is built, and an engine that lacks it pulls it instead of building it",
  async () => {
    using world = openWorld();
    const first = await world.build();
    expect(first.text).toContain("does not have the image yet");
    expect(first.text).toContain("Pushing the image to the registry");
    await until(() => world.isShared(first.image));
    expect(await world.provisioner.checkRegistry()).toBeUndefined();

    await removeImage(first.image);
    const second = await world.build();
    expect([second.image, world.repository.opened()]).toEqual([first.image, 1]);
    expect(second.text).toContain("Pulling the image of the repository from the registry");
    expect(second.text).not.toContain("Pushing");
    expect((await world.build()).text).toBe(`Using the existing image of the repository: ${first.image}.`);
    // Both names are removed; otherwise the space would not be freed.
    await world.provisioner.images.remove([first.image], signal);
    const remaining = await engine.json("look", "GET", `/images/${first.image}/json`, { expectedStatuses: [404] });
    expect(remaining).toBeUndefined();
  },
);

testNeeding(
  [needs.docker, needs.registry],
  "[IB-2] builds succeed while the registry is down, and the problem is reported",
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

test("[IB-2] a registry that does not answer is skipped for a minute, and a failed push is retried", async () => {
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
  const report = new Lines();
  const pull = { engine: new Engine(`tcp://127.0.0.1:${server.port}`, clock), clock, report, stage: "", signal };
  const shared = { image: "slipway-repository:1f", key: "1f", digests: [] };
  const countPushes = () => requests.filter((one) => one.endsWith("/push")).length;
  for (let times = 0; times < 2; times++) expect(await images.pull(pull, "1f")).toBeUndefined();
  expect(requests.filter((one) => one.includes("/distribution/")).length).toBe(1);
  expect(report.text).toContain("Skipping the registry registry.example.com, which did not answer a moment ago.");
  clock.advance(60_001);
  await images.pull(pull, "1f");
  expect(requests.filter((one) => one.includes("/distribution/")).length).toBe(2);

  images.pushInBackground(pull, shared);
  await until(() => countPushes() === 1);
  await until(() => {
    images.pushInBackground(pull, shared);
    return report.text.includes("The last try failed: dial tcp: i/o timeout");
  });
  const tries = countPushes();
  isDown = false;
  clock.advance(30_000);
  await until(() => countPushes() > tries);
  images.pushInBackground(pull, {
    image: shared.image,
    key: shared.key,
    digests: ["registry.example.com/acme/workspaces@sha256:1f"],
  });
  images.stop();
});

testNeeding(
  [needs.docker, needs.registry],
  "[IB-3] builds succeed with wrong credentials; the report names the settings, and the engine does not store the credentials",
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
  const { build: _, ...rest } = world.repository.plan;
  for (const image of [`${registry?.host}/${NAME}`, `${registry?.host}/${NAME}:1f-amd64`]) {
    const building = world.provisioner.images.build({ ...rest, image }, "", new Lines(), signal);
    await expect(building).rejects.toThrow("cannot be used by name");
  }
});
