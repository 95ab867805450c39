// The base images that a repository's Dockerfile needs: which images are fetched before the build, for which platform, and for how long.
import { afterAll, beforeEach, expect, test } from "bun:test";
import { sha256 } from "#base/ids.ts";
import { createTarEnd } from "#base/program-tar.ts";
import type { RepositoryPlan } from "#schema/templates/repository.ts";
import { DockerImages } from "#src/provisioners/docker/images.ts";
import { findPullReason } from "#src/provisioners/docker/pull.ts";
import type { Report } from "#src/provisioners/provisioner.ts";
import type { RepositorySources } from "#src/provisioners/repository/sources.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { until } from "#test/support/until.ts";

type Variant = {
  readonly Architecture: string;
  readonly OnBuild?: readonly string[];
  readonly Labels?: Readonly<Record<string, string>>;
};

const clock = new ManualClock();
/** The images in the registry with their variants, and the images on the engine, which has one variant of each image. */
const remote = new Map<string, readonly Variant[]>();
const local = new Map<string, Variant>();
let fetched: string[] = [];
/** The credentials that the engine got for its fetches. */
let tokens: string[] = [];
/** If set, the response to a fetch. */
let fetchResponse: ReadableStream<Uint8Array> | undefined;
let lines: string[] = [];
/** The archive of the last build. */
let builtArchive = "";
/** Runs before the engine reads the archive. */
let beforeBuild = (): void => {};
const toId = (variant: Variant): string => `sha256:${sha256(JSON.stringify(variant))}`;
beforeEach(() => {
  builtArchive = "";
  beforeBuild = () => {};
  remote.clear();
  local.clear();
  fetched = [];
  tokens = [];
  lines = [];
  fetchResponse = undefined;
});

const fetchImage = (query: URLSearchParams): Response => {
  const image = `${query.get("fromImage")}:${query.get("tag")}`;
  const platform = query.get("platform");
  fetched.push(platform === null ? image : `${image} ${platform}`);
  if (fetchResponse) return new Response(fetchResponse);
  const variants = remote.get(image) ?? [];
  // An image with one variant is fetched for each platform, and engines only warn.
  const found = variants.find(({ Architecture }) => platform === `linux/${Architecture}`) ?? variants[0];
  if (!found) return Response.json({ message: "denied" }, { status: 404 });
  local.set(image, found);
  return Response.json({ status: "Downloaded" });
};

const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  idleTimeout: 0,
  fetch: async (request) => {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === "/images/create") {
      const auth = Buffer.from(request.headers.get("x-registry-auth") ?? "", "base64").toString();
      if (auth !== "") tokens.push(auth);
      return fetchImage(searchParams);
    }
    if (pathname === "/build") {
      beforeBuild();
      builtArchive = new TextDecoder().decode(await request.arrayBuffer());
      local.set(searchParams.get("t") ?? "", { Architecture: "amd64" });
      return Response.json({ stream: "Successfully built" });
    }
    const [, image = ""] = /^\/images\/(.+)\/json$/.exec(pathname) ?? [];
    if (image === "") return Response.json([]);
    const found = local.get(image);
    if (!found) return Response.json({ message: `No such image: ${image}` }, { status: 404 });
    const { Architecture, OnBuild = [], Labels = {} } = found;
    return Response.json({
      Id: toId(found),
      Os: "linux",
      Architecture,
      Config: { OnBuild, Labels },
      Created: "2030-01-01T00:00:00Z",
    });
  },
});
afterAll(() => server.stop(true));

const report: Report = { log: (_level, _stage, line) => lines.push(line), timing: () => {} };

type BuildOptions = {
  readonly target?: string;
  readonly context?: () => ReadableStream<Uint8Array>;
  readonly limit?: number;
};

const build = (dockerfile: string, { target, context, limit }: BuildOptions = {}): Promise<readonly string[]> => {
  const tree = crypto.randomUUID().replaceAll("-", "").padEnd(40, "0");
  const sources: RepositorySources = {
    open: async () => ({
      archive: () => context?.() ?? (new Response(createTarEnd()).body as ReadableStream<Uint8Array>),
      read: async () => dockerfile,
      getObjectId: async () => tree,
      [Symbol.dispose]: () => {},
    }),
    loadFeature: () => Promise.reject(new Error("there are no features")),
    fetchPullToken: async (image) => {
      if (image.startsWith("10.")) throw new Error("10.1.2.3 is not a public address.");
      return image.includes("/") ? `for ${image}` : undefined;
    },
  };
  const source = { dockerfile: "Dockerfile", context: "", args: {}, tree, dockerfile_id: tree };
  const plan = { url: "http://git.example.com/app", commit: tree, features: [], build: { ...source, target } };
  const host = `tcp://127.0.0.1:${server.port}`;
  const max_bytes = Number.POSITIVE_INFINITY;
  const max_context_bytes = limit ?? max_bytes;
  const images = new DockerImages({ host, clock, sources, registry: undefined, max_bytes, max_context_bytes });
  return images.build(plan as unknown as RepositoryPlan, "", report, new AbortController().signal);
};

test("[RW-27] fetches and checks a base image for the platform of its FROM", async () => {
  local.set("evil:1", { Architecture: "amd64" });
  remote.set("evil:1", [{ Architecture: "amd64" }, { Architecture: "arm64", OnBuild: ["COPY --from=c2 / /loot"] }]);
  await expect(build("FROM --platform=linux/arm64 evil:1\n")).rejects.toThrow("The image evil:1 has the instruction");
  expect(fetched).toEqual(["evil:1 linux/arm64"]);
});

test("[RW-30] refuses a base image with the server's labels, whether it is fetched or already on the engine", async () => {
  const imageWithLabel = { Architecture: "amd64", Labels: { note: "x", "slipway.workspace_id": "1" } };
  remote.set("evil:1", [imageWithLabel]);
  for (let attempt = 0; attempt < 2; attempt++)
    await expect(build("FROM evil:1\n")).rejects.toThrow("The image evil:1 has the label slipway.workspace_id.");
  expect(fetched).toEqual(["evil:1"]);
});

test("[RW-27] does not fetch an image that the engine has for the platform, and refuses an image without the platform", async () => {
  local.set("other:1", { Architecture: "arm64" });
  await build("FROM --platform=linux/arm64/v8 other:1\n");
  await build("FROM --platform=$BUILDPLATFORM other:1\n");
  expect(fetched).toEqual([]);
  remote.set("single:1", [{ Architecture: "amd64" }]);
  const building = build("FROM --platform=linux/arm64 single:1\n");
  await expect(building).rejects.toThrow("The image single:1 has no variant for linux/arm64.");
});

test("[RW-27] does not fetch images of stages after the target", async () => {
  remote.set("node:22", [{ Architecture: "amd64" }]);
  await build("FROM node:22 AS dev\nFROM gcr.io/private/prod:1 AS prod\nFROM runtime-$TARGETARCH\n", { target: "dev" });
  expect(fetched).toEqual(["node:22"]);
});

test("[RW-29] builds on the checked base images, even if their tags move before the build", async () => {
  const checkedVariant = { Architecture: "amd64" };
  local.set("node:22", checkedVariant);
  beforeBuild = () => local.set("node:22", { Architecture: "amd64", OnBuild: ["COPY --from=c2 / /loot"] });
  await build("ARG V=22\nFROM node:$V AS a\n  from --platform=linux/amd64 node:22\nRUN true\nFROM a\n");
  const id = toId(checkedVariant);
  expect(builtArchive).toContain(`ARG V=22\nFROM ${id} AS a\nFROM --platform=linux/amd64 ${id}\nRUN true\nFROM a\n`);
});

test("[RW-29] refuses a FROM with several lines, because its base image cannot be pinned", async () => {
  local.set("node:22", { Architecture: "amd64" });
  await expect(build("FROM \\\n node:22\n")).rejects.toThrow(
    "FROM in line 1 that cannot be followed. Write it in one line",
  );
});

test("[RW-31] the server checks an image's registry before the engine fetches the image with the server's token", async () => {
  for (const line of ["FROM 10.1.2.3:5000/x:1", "FROM alpine\nCOPY --from=10.1.2.3:5000/x:1 / /"]) {
    local.set("alpine", { Architecture: "amd64" });
    await expect(build(`${line}\n`)).rejects.toThrow("10.1.2.3 is not a public address.");
  }
  expect([fetched, builtArchive]).toEqual([[], ""]);
  local.set("10.1.2.3:5000/x:1", { Architecture: "amd64" });
  await build("FROM 10.1.2.3:5000/x:1\n");
  for (const image of ["node:22", "r.example.com/app:1", "r.example.com/tool:1"])
    remote.set(image, [
      { Architecture: "amd64", OnBuild: image === "node:22" ? ["COPY --from=r.example.com/tool:1 / /"] : [] },
    ]);
  await build("FROM node:22\nCOPY --from=r.example.com/app:1 / /\n");
  expect(fetched).toEqual(["node:22", "r.example.com/tool:1", "r.example.com/app:1"]);
  expect(tokens).toEqual([
    '{"registrytoken":"for r.example.com/tool:1"}',
    '{"registrytoken":"for r.example.com/app:1"}',
  ]);
});

test("[RW-31] explains a failed fetch without parts of the registry's response", () => {
  for (const [message, reason] of [
    ['error parsing HTTP 404 response body: invalid character: "hunter2"', "its registry answered with status 404"],
    ["unknown: hunter2 denied by hunter2", "its registry does not have it, or requires sign-in"],
    ["manifest for a/b:1 not found: manifest unknown: hunter2", "its registry does not have it"],
    [
      "unexpected status from HEAD request to http://x/v2/: 401 Unauthorized hunter2",
      "its registry answered with status 401",
    ],
    ["dial tcp: lookup x: no such host", "the Docker Engine cannot reach its registry"],
    ["hunter2", "its registry's answer cannot be read"],
  ] as const)
    expect(findPullReason(message)).toBe(reason);
});

test("[RW-33] ends a build whose files are larger than the limit, and sends no more of them", async () => {
  local.set("node:22", { Architecture: "amd64" });
  let sentBytes = 0;
  const context = (): ReadableStream<Uint8Array> =>
    new ReadableStream({
      pull: (controller) => {
        sentBytes += 64 * 1024;
        controller.enqueue(new Uint8Array(64 * 1024));
      },
    });
  await expect(build("FROM node:22\n", { context, limit: 1024 * 1024 })).rejects.toThrow(
    "The files of the image's build are larger than 1048576 bytes. Set build.context to a folder with fewer files.",
  );
  expect(sentBytes).toBeLessThan(2 * 1024 * 1024);
  expect(builtArchive).toBe("");
});

test("[RW-24] a slow registry blocks a build slot for at most 60 minutes", async () => {
  const pieces = new TransformStream<Uint8Array, Uint8Array>();
  fetchResponse = pieces.readable;
  const writer = pieces.writable.getWriter();
  const building = build("FROM slow.example.com/x:1\n");
  building.catch(() => {});
  for (let part = 1; part <= 15; part++) {
    void writer.write(new TextEncoder().encode(`{"status":"part ${part}"}\n`)).catch(() => {});
    await until(() => lines.includes(`part ${part}`));
    clock.advance(4 * 60_000);
  }
  await expect(building).rejects.toThrow("The build of the image was ended: it took more than 60 minutes.");
});
