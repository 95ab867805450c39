// The base images that a repository's Dockerfile needs: which of them are fetched before its build, for which platform, and for how long.
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
/** The images in the registry, each with its variants, and those on the engine, which has one variant of each. */
const remote = new Map<string, readonly Variant[]>();
const local = new Map<string, Variant>();
let fetched: string[] = [];
/** The credentials that the engine got for its fetches. */
let tokens: string[] = [];
/** Answers a fetch in place of the registry. */
let slow: ReadableStream<Uint8Array> | undefined;
let lines: string[] = [];
/** The Dockerfile of the last build, and what happens before the engine reads it. */
let built = "";
let beforeBuild = (): void => {};
const toId = (variant: Variant): string => `sha256:${sha256(JSON.stringify(variant))}`;
beforeEach(() => {
  built = "";
  beforeBuild = () => {};
  remote.clear();
  local.clear();
  fetched = [];
  tokens = [];
  lines = [];
  slow = undefined;
});

const fetchImage = (query: URLSearchParams): Response => {
  const image = `${query.get("fromImage")}:${query.get("tag")}`;
  const platform = query.get("platform");
  fetched.push(platform === null ? image : `${image} ${platform}`);
  if (slow) return new Response(slow);
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
      built = new TextDecoder().decode(await request.arrayBuffer());
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

type Asked = { readonly target?: string; readonly context?: () => ReadableStream<Uint8Array>; readonly limit?: number };

const build = (dockerfile: string, { target, context, limit }: Asked = {}): Promise<readonly string[]> => {
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

test("[RW-27] a base is fetched and checked for the platform of its FROM", async () => {
  local.set("evil:1", { Architecture: "amd64" });
  remote.set("evil:1", [{ Architecture: "amd64" }, { Architecture: "arm64", OnBuild: ["COPY --from=c2 / /loot"] }]);
  await expect(build("FROM --platform=linux/arm64 evil:1\n")).rejects.toThrow("The image evil:1 has the instruction");
  expect(fetched).toEqual(["evil:1 linux/arm64"]);
});

test("[RW-30] a base image with labels of the server is refused, whether it is fetched or already on the engine", async () => {
  const evil = { Architecture: "amd64", Labels: { note: "x", "slipway.workspace_id": "1" } };
  remote.set("evil:1", [evil]);
  for (let at = 0; at < 2; at++)
    await expect(build("FROM evil:1\n")).rejects.toThrow("The image evil:1 has the label slipway.workspace_id.");
  expect(fetched).toEqual(["evil:1"]);
});

test("[RW-27] an image that the engine already has for the platform is not fetched, and one without that platform is refused", async () => {
  local.set("other:1", { Architecture: "arm64" });
  await build("FROM --platform=linux/arm64/v8 other:1\n");
  await build("FROM --platform=$BUILDPLATFORM other:1\n");
  expect(fetched).toEqual([]);
  remote.set("single:1", [{ Architecture: "amd64" }]);
  const building = build("FROM --platform=linux/arm64 single:1\n");
  await expect(building).rejects.toThrow("The image single:1 has no variant for linux/arm64.");
});

test("[RW-27] images of stages below the target are not fetched", async () => {
  remote.set("node:22", [{ Architecture: "amd64" }]);
  await build("FROM node:22 AS dev\nFROM gcr.io/private/prod:1 AS prod\nFROM runtime-$TARGETARCH\n", { target: "dev" });
  expect(fetched).toEqual(["node:22"]);
});

test("[RW-29] an image is built on the bases that were checked, even if their tags move before the build", async () => {
  const checked = { Architecture: "amd64" };
  local.set("node:22", checked);
  beforeBuild = () => local.set("node:22", { Architecture: "amd64", OnBuild: ["COPY --from=c2 / /loot"] });
  await build("ARG V=22\nFROM node:$V AS a\n  from --platform=linux/amd64 node:22\nRUN true\nFROM a\n");
  const id = toId(checked);
  expect(built).toContain(`ARG V=22\nFROM ${id} AS a\nFROM --platform=linux/amd64 ${id}\nRUN true\nFROM a\n`);
});

test("[RW-29] a FROM that takes several lines is refused with advice, since its base cannot be pinned", async () => {
  local.set("node:22", { Architecture: "amd64" });
  await expect(build("FROM \\\n node:22\n")).rejects.toThrow(
    "FROM in line 1 that cannot be followed. Write it in one line",
  );
});

test("[RW-31] the server checks the registry of an image before the engine fetches it, and the engine gets the server's token", async () => {
  for (const line of ["FROM 10.1.2.3:5000/x:1", "FROM alpine\nCOPY --from=10.1.2.3:5000/x:1 / /"]) {
    local.set("alpine", { Architecture: "amd64" });
    await expect(build(`${line}\n`)).rejects.toThrow("10.1.2.3 is not a public address.");
  }
  expect([fetched, built]).toEqual([[], ""]);
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

test("[RW-31] a failed fetch is explained without a part of an answer", () => {
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

test("[RW-33] a build whose files are larger than the limit is ended, and the engine gets no more of them", async () => {
  local.set("node:22", { Architecture: "amd64" });
  let sent = 0;
  const context = (): ReadableStream<Uint8Array> =>
    new ReadableStream({
      pull: (controller) => {
        sent += 64 * 1024;
        controller.enqueue(new Uint8Array(64 * 1024));
      },
    });
  await expect(build("FROM node:22\n", { context, limit: 1024 * 1024 })).rejects.toThrow(
    "The files of the image's build are larger than 1048576 bytes. Set build.context to a folder with fewer files.",
  );
  expect(sent).toBeLessThan(2 * 1024 * 1024);
  expect(built).toBe("");
});

test("[RW-24] a registry that sends a base image too slowly blocks a build slot for 60 minutes at most", async () => {
  const pieces = new TransformStream<Uint8Array, Uint8Array>();
  slow = pieces.readable;
  const writer = pieces.writable.getWriter();
  const building = build("FROM slow.example.com/x:1\n");
  building.catch(() => {});
  for (let at = 1; at <= 15; at++) {
    void writer.write(new TextEncoder().encode(`{"status":"part ${at}"}\n`)).catch(() => {});
    await until(() => lines.includes(`part ${at}`));
    clock.advance(4 * 60_000);
  }
  await expect(building).rejects.toThrow("The build of the image was ended: it took more than 60 minutes.");
});
