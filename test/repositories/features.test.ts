// Features of dev containers, without a Docker Engine: their metadata, their order, and how the server fetches them from a registry.
import { afterAll, expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import { systemClock } from "#base/clock.ts";
import { Outbound } from "#base/outbound.ts";
import { FeatureRegistry, MAX_FEATURE_BYTES } from "#src/git/feature-registry.ts";
import {
  type Feature,
  readFeature,
  readFeatureArchive,
  sortByInstallOrder,
  toDockerfile,
} from "#src/provisioners/repository/features.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { tempDirectory } from "#test/support/server.ts";
import { makeCertificate } from "../cli/certificate.ts";
import { FeatureHost } from "./feature-host.ts";

const host = new FeatureHost();
afterAll(() => host[Symbol.dispose]());

const localOutbound = new Outbound({
  clock: systemClock,
  allowed: ["127.0.0.0/8", "::1/128"],
  max_bytes: MAX_FEATURE_BYTES,
});
const neverAborted = new AbortController().signal;

const makeFeature = (id: string, metadata: object, options: Record<string, string> = {}): Feature => ({
  id,
  options,
  metadata: readFeature(id, JSON.stringify(metadata)),
});

test("[RW-14] features are installed after their dependencies, and cycles are rejected", () => {
  const features = [
    makeFeature("r.example.com/a/last:2", {
      installsAfter: ["r.example.com/a/middle"],
      dependsOn: { "r.example.com/a/first:1": {} },
    }),
    makeFeature("r.example.com/a/middle@sha256:abc", {
      installsAfter: ["r.example.com/a/first", "r.example.com/not/here"],
    }),
    makeFeature("r.example.com/a/first:1", {}),
  ];
  expect(sortByInstallOrder(features).map(({ id }) => id)).toEqual([
    features[2]?.id ?? "",
    features[1]?.id ?? "",
    features[0]?.id ?? "",
  ]);
  const cycle = [
    makeFeature("a/x/y", { installsAfter: ["a/x/z"] }),
    makeFeature("a/x/z", { installsAfter: ["a/x/y"] }),
  ];
  expect(() => sortByInstallOrder(cycle)).toThrow("These features wait for each other: a/x/y, a/x/z.");
});

test("[RW-14] the install script gets options as quoted variables, and privileged properties are dropped", () => {
  const metadata = {
    options: { version: { default: "latest" }, "2fast": { default: true }, "with-it's": { default: "a" } },
    containerEnv: { PATH: `/opt/bin:\${PATH}` },
    privileged: true,
    mounts: [{}],
    entrypoint: "/x",
  };
  const feature = makeFeature("r.example.com/a/b:1", metadata, { version: "1'; id; '" });
  expect(feature.metadata.dropped).toEqual(["privileged", "mounts", "entrypoint"]);
  const dockerfile = toDockerfile("base:1", [feature], { user: "dev", image_user: "dev" });
  expect(dockerfile.split("\n").map((line) => line.split(" ")[0])).toEqual([
    "FROM",
    "USER",
    "ADD",
    "RUN",
    "ENV",
    "USER",
    "",
  ]);
  const [, , script] = JSON.parse(dockerfile.split("\n")[3]?.slice("RUN ".length) ?? "[]") as string[];
  const result = Bun.spawnSync(["sh", "-c", `${script?.split("\ncd ")[0]}\necho "$VERSION $_REMOTE_USER"`], {
    env: {},
  });
  expect(result.stdout.toString()).toBe("1'; id; ' dev\n");
  expect(dockerfile).toContain(`ENV PATH="/opt/bin:\${PATH}"`);
  expect(() => readFeature("x", "[")).toThrow("not valid JSON");
});

test("[RW-17] the server fetches a feature with an anonymous token, which only the registry gets", async () => {
  const id = await host.publish("acme/tool", { id: "tool" }, "#!/bin/sh\n");
  const registry = new FeatureRegistry(localOutbound);
  const bytes = await registry.fetch(id, neverAborted);
  expect(new TextDecoder().decode(bytes)).toContain("devcontainer-feature.json");
  expect(host.requests).toEqual(["manifests acme/tool", "blobs acme/tool", "stored"]);
});

test("[RW-17] an error names a feature that the registry rejects, does not have or sends in another form", async () => {
  const registry = new FeatureRegistry(localOutbound);
  const publicOnly = new FeatureRegistry(new Outbound({ clock: systemClock, allowed: [] }));
  using wrongServer = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: ({ url }) =>
      url.includes("/manifests/")
        ? Response.json({ layers: [{ digest: `sha256:${"0".repeat(64)}` }] })
        : new Response("something else"),
  });
  const invalidFeatures: [FeatureRegistry, string, string][] = [
    [registry, `${host.name}/acme/none:1`, "answered with status 404"],
    [registry, `127.0.0.1:${wrongServer.port}/a/b:1`, "sent content that doesn't match its digest"],
    [registry, "nothing", "is not a reference to a registry"],
    [registry, `${host.name}/../x:1`, "is not a reference to a registry"],
    [publicOnly, `${host.name}/acme/tool:1`, "is not a public address"],
  ];
  for (const [source, id, message] of invalidFeatures)
    await expect(source.fetch(id, neverAborted)).rejects.toThrow(message);
});

test("[RW-31] the server gets a pull token from an image's registry, and never calls a forbidden address", async () => {
  const registry = new FeatureRegistry(localOutbound);
  const publicOnly = new FeatureRegistry(new Outbound({ clock: systemClock, allowed: [] }));
  const responses: Record<string, () => Response> = {
    open: () => new Response("{}"),
    private: () =>
      new Response("", { status: 401, headers: { "www-authenticate": 'Bearer realm="http://10.1.2.3/token"' } }),
    moved: () => Response.redirect("http://169.254.169.254/latest", 307),
  };
  using server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: ({ url }) => responses[new URL(url).pathname.split("/")[2] ?? ""]?.() ?? new Response("", { status: 404 }),
  });
  const registryHost = server.url.host;
  expect(await registry.fetchPullToken(`${host.name}/acme/tool:1`, neverAborted)).toBe("for repository:acme/tool:pull");
  expect(await registry.fetchPullToken(`${registryHost}/open/x@sha256:${"0".repeat(64)}`, neverAborted)).toBe("none");
  for (const image of ["alpine", "library/alpine:3", "ghcr.io/acme/app:1", "docker.io/acme/app"])
    expect(await publicOnly.fetchPullToken(image, neverAborted)).toBeUndefined();
  for (const [source, image, message] of [
    [publicOnly, `${registryHost}/open/x:1`, "127.0.0.1 is not a public address"],
    [publicOnly, "localhost/x", "localhost is not a public address"],
    [publicOnly, "0x7f.1:80/x", "127.0.0.1 is not a public address"],
    [registry, `${registryHost}/private/x`, "10.1.2.3 is not a public address"],
    [registry, `${registryHost}/moved/x`, "169.254.169.254 is not a public address"],
    [registry, "xn--a.example.com/x", "is not a reference to a registry"],
  ] as const)
    await expect(source.fetchPullToken(image, neverAborted)).rejects.toThrow(message);
});

test("[RW-31] fetching a pull token fails if the registry's response is too large or cannot be read", async () => {
  const registry = new FeatureRegistry(localOutbound);
  const compressedZeros = gzipSync(Buffer.alloc(300 * 1024 * 1024), { level: 1 });
  const requireToken = (): Response =>
    new Response("", {
      status: 401,
      headers: { "www-authenticate": `Bearer realm="${new URL("/v2/bomb", server.url)}"` },
    });
  const responses: Record<string, () => Response> = {
    large: () => new Response(Buffer.alloc(5 * 1024 * 1024)),
    error: () => new Response(Buffer.alloc(5 * 1024 * 1024), { status: 500 }),
    bomb: () => new Response(compressedZeros, { headers: { "content-encoding": "gzip" } }),
    other: () => new Response("x", { headers: { "content-encoding": "br" } }),
    token: requireToken,
    basic: () => new Response("", { status: 401, headers: { "www-authenticate": "Basic" } }),
    loop: () => Response.redirect(new URL("/v2/loop", server.url).href, 307),
    small: () => new Response("missing", { status: 404 }),
  };
  using server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: ({ url }) => responses[new URL(url).pathname.split("/")[2] ?? ""]?.() ?? new Response("", { status: 404 }),
  });
  const registryHost = server.url.host;
  const rssBefore = process.memoryUsage.rss();
  for (const [name, message] of [
    ["large", `the manifest from ${registryHost} is larger than 4194304 bytes.`],
    ["error", `the manifest from ${registryHost} is larger than 4194304 bytes.`],
    ["bomb", `the manifest from ${registryHost} is larger than 4194304 bytes.`],
    ["other", "the content encoding br, which was not requested"],
    ["token", `${registryHost} gives no anonymous token.`],
    ["basic", "the registry requires sign-in."],
    ["loop", `${registryHost} redirects too many times.`],
  ] as const)
    await expect(registry.fetchPullToken(`${registryHost}/${name}/x:1`, neverAborted)).rejects.toThrow(message);
  expect(process.memoryUsage.rss() - rssBefore).toBeLessThan(200 * 1024 * 1024);
  expect(await registry.fetchPullToken(`${registryHost}/small/x:1`, neverAborted)).toBe("none");
  // An engine may be able to reach registries that the server cannot.
  expect(await registry.fetchPullToken("127.0.0.1:1/x:1", neverAborted)).toBe("none");
});

testNeeding(
  [needs.openssl],
  "[RW-31] with a certificate that only the engine trusts, a registry can give a token, but not a feature",
  async () => {
    using folder = tempDirectory();
    const { cert, key } = await makeCertificate(folder.path, "registry", "DNS:registry.example.com");
    using trustedHost = new FeatureHost({ cert: Bun.file(cert), key: Bun.file(key) });
    const resolve = async (): Promise<string[]> => ["127.0.0.1"];
    const openRegistry = (allowed: string[]) =>
      new FeatureRegistry(new Outbound({ clock: systemClock, allowed, resolve }));
    const image = `${trustedHost.name.replace("127.0.0.1", "registry.example.com")}/acme/tool:1`;
    const registry = openRegistry(["127.0.0.0/8"]);
    expect(await registry.fetchPullToken(image, neverAborted)).toBe("for repository:acme/tool:pull");
    await expect(registry.fetch(image, neverAborted)).rejects.toThrow("certificate");
    await expect(openRegistry([]).fetchPullToken(image, neverAborted)).rejects.toThrow("not a public address");
  },
);

test("[RW-32] a feature that unpacks to more than the limit is rejected before it is unpacked", async () => {
  const compressedZeros = gzipSync(Buffer.alloc(300 * 1024 * 1024), { level: 1 });
  const rssBefore = process.memoryUsage.rss();
  await expect(readFeatureArchive("r.example.com/a/b:1", compressedZeros)).rejects.toThrow(
    "unpacks to more than 67108864 bytes",
  );
  expect(process.memoryUsage.rss() - rssBefore).toBeLessThan(200 * 1024 * 1024);
  await expect(readFeatureArchive("x", compressedZeros.subarray(0, 99))).rejects.toThrow(
    "The archive of the feature x is damaged.",
  );
  const id = await host.publish("acme/packed", { id: "packed", name: "Packed" }, "#!/bin/sh\n");
  const tar = await new FeatureRegistry(localOutbound).fetch(id, neverAborted);
  expect((await readFeatureArchive("x", gzipSync(tar))).name).toBe("Packed");
});
