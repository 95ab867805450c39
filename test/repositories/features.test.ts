// Features without a Docker Engine: their metadata, their order, and how they are fetched from a registry.
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

const feature = (id: string, metadata: object, options: Record<string, string> = {}): Feature => ({
  id,
  options,
  metadata: readFeature(id, JSON.stringify(metadata)),
});

test("[RW-14] features are installed after their dependencies, without cycles", () => {
  const all = [
    feature("r.example.com/a/last:2", {
      installsAfter: ["r.example.com/a/middle"],
      dependsOn: { "r.example.com/a/first:1": {} },
    }),
    feature("r.example.com/a/middle@sha256:abc", {
      installsAfter: ["r.example.com/a/first", "r.example.com/not/here"],
    }),
    feature("r.example.com/a/first:1", {}),
  ];
  expect(sortByInstallOrder(all).map(({ id }) => id)).toEqual([all[2]?.id ?? "", all[1]?.id ?? "", all[0]?.id ?? ""]);
  const round = [feature("a/x/y", { installsAfter: ["a/x/z"] }), feature("a/x/z", { installsAfter: ["a/x/y"] })];
  expect(() => sortByInstallOrder(round)).toThrow("These features wait for each other: a/x/y, a/x/z.");
});

test("[RW-14] options reach the install script as quoted variables, and privileged options are left out", () => {
  const metadata = {
    options: { version: { default: "latest" }, "2fast": { default: true }, "with-it's": { default: "a" } },
    containerEnv: { PATH: `/opt/bin:\${PATH}` },
    privileged: true,
    mounts: [{}],
    entrypoint: "/x",
  };
  const one = feature("r.example.com/a/b:1", metadata, { version: "1'; id; '" });
  expect(one.metadata.dropped).toEqual(["privileged", "mounts", "entrypoint"]);
  const text = toDockerfile("base:1", [one], { user: "dev", image_user: "dev" });
  expect(text.split("\n").map((line) => line.split(" ")[0])).toEqual(["FROM", "USER", "ADD", "RUN", "ENV", "USER", ""]);
  const [, , script] = JSON.parse(text.split("\n")[3]?.slice("RUN ".length) ?? "[]") as string[];
  const seen = Bun.spawnSync(["sh", "-c", `${script?.split("\ncd ")[0]}\necho "$VERSION $_REMOTE_USER"`], { env: {} });
  expect(seen.stdout.toString()).toBe("1'; id; ' dev\n");
  expect(text).toContain(`ENV PATH="/opt/bin:\${PATH}"`);
  expect(() => readFeature("x", "[")).toThrow("not valid JSON");
});

test("[RW-17] a feature is fetched from a registry with an anonymous token, which no other host gets", async () => {
  const id = await host.publish("acme/tool", { id: "tool" }, "#!/bin/sh\n");
  const registry = new FeatureRegistry(localOutbound);
  const bytes = await registry.fetch(id, neverAborted);
  expect(new TextDecoder().decode(bytes)).toContain("devcontainer-feature.json");
  expect(host.requests).toEqual(["manifests acme/tool", "blobs acme/tool", "stored"]);
});

test("[RW-17] a feature that a registry refuses, does not have or sends in another form is reported by name", async () => {
  const registry = new FeatureRegistry(localOutbound);
  const closed = new FeatureRegistry(new Outbound({ clock: systemClock, allowed: [] }));
  using liar = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: ({ url }) =>
      url.includes("/manifests/")
        ? Response.json({ layers: [{ digest: `sha256:${"0".repeat(64)}` }] })
        : new Response("something else"),
  });
  const problems: [FeatureRegistry, string, string][] = [
    [registry, `${host.name}/acme/none:1`, "answered with status 404"],
    [registry, `127.0.0.1:${liar.port}/a/b:1`, "sent content that doesn't match its digest"],
    [registry, "nothing", "is not a reference to a registry"],
    [registry, `${host.name}/../x:1`, "is not a reference to a registry"],
    [closed, `${host.name}/acme/tool:1`, "is not a public address"],
  ];
  for (const [from, id, words] of problems) await expect(from.fetch(id, neverAborted)).rejects.toThrow(words);
});

test("[RW-31] the server signs in to an image's registry for the engine, at no address that may not be called", async () => {
  const registry = new FeatureRegistry(localOutbound);
  const closed = new FeatureRegistry(new Outbound({ clock: systemClock, allowed: [] }));
  const answers: Record<string, () => Response> = {
    open: () => new Response("{}"),
    private: () =>
      new Response("", { status: 401, headers: { "www-authenticate": 'Bearer realm="http://10.1.2.3/token"' } }),
    moved: () => Response.redirect("http://169.254.169.254/latest", 307),
  };
  using server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: ({ url }) => answers[new URL(url).pathname.split("/")[2] ?? ""]?.() ?? new Response("", { status: 404 }),
  });
  const at = server.url.host;
  expect(await registry.fetchPullToken(`${host.name}/acme/tool:1`, neverAborted)).toBe("for repository:acme/tool:pull");
  expect(await registry.fetchPullToken(`${at}/open/x@sha256:${"0".repeat(64)}`, neverAborted)).toBe("none");
  for (const image of ["alpine", "library/alpine:3", "ghcr.io/acme/app:1", "docker.io/acme/app"])
    expect(await closed.fetchPullToken(image, neverAborted)).toBeUndefined();
  for (const [from, image, words] of [
    [closed, `${at}/open/x:1`, "127.0.0.1 is not a public address"],
    [closed, "localhost/x", "localhost is not a public address"],
    [closed, "0x7f.1:80/x", "127.0.0.1 is not a public address"],
    [registry, `${at}/private/x`, "10.1.2.3 is not a public address"],
    [registry, `${at}/moved/x`, "169.254.169.254 is not a public address"],
    [registry, "xn--a.example.com/x", "is not a reference to a registry"],
  ] as const)
    await expect(from.fetchPullToken(image, neverAborted)).rejects.toThrow(words);
});

test("[RW-31] an engine is not asked to pull from a registry whose answer is too large or cannot be read", async () => {
  const registry = new FeatureRegistry(localOutbound);
  const bomb = gzipSync(Buffer.alloc(300 * 1024 * 1024), { level: 1 });
  const challenge = (): Response =>
    new Response("", {
      status: 401,
      headers: { "www-authenticate": `Bearer realm="${new URL("/v2/bomb", server.url)}"` },
    });
  const answers: Record<string, () => Response> = {
    large: () => new Response(Buffer.alloc(5 * 1024 * 1024)),
    error: () => new Response(Buffer.alloc(5 * 1024 * 1024), { status: 500 }),
    bomb: () => new Response(bomb, { headers: { "content-encoding": "gzip" } }),
    other: () => new Response("x", { headers: { "content-encoding": "br" } }),
    token: challenge,
    basic: () => new Response("", { status: 401, headers: { "www-authenticate": "Basic" } }),
    loop: () => Response.redirect(new URL("/v2/loop", server.url).href, 307),
    small: () => new Response("missing", { status: 404 }),
  };
  using server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: ({ url }) => answers[new URL(url).pathname.split("/")[2] ?? ""]?.() ?? new Response("", { status: 404 }),
  });
  const at = server.url.host;
  const before = process.memoryUsage.rss();
  for (const [name, words] of [
    ["large", `the manifest from ${at} is larger than 4194304 bytes.`],
    ["error", `the manifest from ${at} is larger than 4194304 bytes.`],
    ["bomb", `the manifest from ${at} is larger than 4194304 bytes.`],
    ["other", "the content encoding br, which was not requested"],
    ["token", `${at} gives no anonymous token.`],
    ["basic", "the registry requires sign-in."],
    ["loop", `${at} redirects too many times.`],
  ] as const)
    await expect(registry.fetchPullToken(`${at}/${name}/x:1`, neverAborted)).rejects.toThrow(words);
  expect(process.memoryUsage.rss() - before).toBeLessThan(200 * 1024 * 1024);
  expect(await registry.fetchPullToken(`${at}/small/x:1`, neverAborted)).toBe("none");
  // An engine can reach registries that the server cannot.
  expect(await registry.fetchPullToken("127.0.0.1:1/x:1", neverAborted)).toBe("none");
});

testNeeding(
  [needs.openssl],
  "[RW-31] a registry whose certificate only the engine trusts gives its token, and no feature",
  async () => {
    using folder = tempDirectory();
    const { cert, key } = await makeCertificate(folder.path, "registry", "DNS:registry.example.com");
    using trusted = new FeatureHost({ cert: Bun.file(cert), key: Bun.file(key) });
    const resolve = async (): Promise<string[]> => ["127.0.0.1"];
    const open = (allowed: string[]) => new FeatureRegistry(new Outbound({ clock: systemClock, allowed, resolve }));
    const image = `${trusted.name.replace("127.0.0.1", "registry.example.com")}/acme/tool:1`;
    const registry = open(["127.0.0.0/8"]);
    expect(await registry.fetchPullToken(image, neverAborted)).toBe("for repository:acme/tool:pull");
    await expect(registry.fetch(image, neverAborted)).rejects.toThrow("certificate");
    await expect(open([]).fetchPullToken(image, neverAborted)).rejects.toThrow("not a public address");
  },
);

test("[RW-32] a feature that unpacks to gigabytes is refused before it is unpacked", async () => {
  const bomb = gzipSync(Buffer.alloc(300 * 1024 * 1024), { level: 1 });
  const before = process.memoryUsage.rss();
  await expect(readFeatureArchive("r.example.com/a/b:1", bomb)).rejects.toThrow("unpacks to more than 67108864 bytes");
  expect(process.memoryUsage.rss() - before).toBeLessThan(200 * 1024 * 1024);
  await expect(readFeatureArchive("x", bomb.subarray(0, 99))).rejects.toThrow(
    "The archive of the feature x is damaged.",
  );
  const blob = await host.publish("acme/packed", { id: "packed", name: "Packed" }, "#!/bin/sh\n");
  const tar = await new FeatureRegistry(localOutbound).fetch(blob, neverAborted);
  expect((await readFeatureArchive("x", gzipSync(tar))).name).toBe("Packed");
});
