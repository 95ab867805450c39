// The output of `bun run release`, with small scripts as programs: lists and signatures, reproducible bytes, the npm packages from a fake
// registry, and the image in a container engine.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { digestFile, parsePublicKey, verifyDigest } from "#base/minisign.ts";
import type { Release } from "#base/release.ts";
import { generateSigningKey } from "#src/release/signing-key.ts";
import { hashFile, packFolder } from "#src/release/tools.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { toProgramCommand } from "#test/support/program.ts";
import { createTestRelease } from "#test/support/release.ts";
import { until } from "#test/support/until.ts";

const RELEASE_URL = "https://downloads.example.com/slipway";
const key = generateSigningKey();

let release: Awaited<ReturnType<typeof createTestRelease>>;
beforeAll(async () => {
  release = await createTestRelease({ key, url: RELEASE_URL, only: ["programs", "npm", "chart", "scripts"] });
});
afterAll(() => release[Symbol.dispose]());

const readRelease = (): Release => JSON.parse(readFileSync(join(release.out, "release.json"), "utf8"));

describe("a release", () => {
  test("[RL-2] lists every file with size and digest, and has a signature of each file with its name and version", async () => {
    expect(release.isComplete).toBe(true);
    const keys = [parsePublicKey(readFileSync(join(release.out, "slipway.pub"), "utf8"))];
    const { version, files } = readRelease();
    expect(version).toBe("0.2.0");
    const names = [...new Bun.Glob("**/*").scanSync({ cwd: release.out })].filter((name) => !name.endsWith(".minisig"));
    const unlisted = ["release.json", "SHA256SUMS", "slipway.pub"];
    expect(files.map(({ name }) => name).sort()).toEqual(names.filter((name) => !unlisted.includes(name)).sort());
    for (const { name, size, sha256 } of files) {
      const path = join(release.out, name);
      expect([name, Bun.file(path).size, await hashFile(path)]).toEqual([name, size, sha256]);
    }
    for (const name of names.filter((name) => name !== "slipway.pub")) {
      const path = join(release.out, name);
      const comment = verifyDigest(await digestFile(path), readFileSync(`${path}.minisig`, "utf8"), keys);
      expect(comment).toBe(`slipway 0.2.0 ${name}`);
    }
    const sums = Bun.spawnSync(["sha256sum", "--check", "--quiet", "SHA256SUMS"], { cwd: release.out });
    expect(sums.exitCode).toBe(0);
  });

  test("[RL-2] has a formula with this release's programs and their digests", async () => {
    const formula = readFileSync(join(release.out, "slipway.rb"), "utf8");
    expect(formula).not.toMatch(/@[A-Z]/);
    for (const name of ["slipway-darwin-arm64.gz", "slipway-darwin-amd64.gz", "slipway-linux-amd64.gz"]) {
      expect(formula).toContain(
        `url "${RELEASE_URL}/${name}"\n      sha256 "${await hashFile(join(release.out, name))}"`,
      );
    }
  });

  test("[RL-3] is reproducible from the same programs and time", async () => {
    using secondRelease = await createTestRelease({
      key,
      url: RELEASE_URL,
      only: ["programs", "npm", "chart", "scripts"],
    });
    const readSums = (out: string): string => readFileSync(join(out, "SHA256SUMS"), "utf8");
    expect(readSums(secondRelease.out)).toBe(readSums(release.out));
  });

  testNeeding([needs.nfpm], "[RL-3] has reproducible packages for Debian and RPM", async () => {
    using first = await createTestRelease({ only: ["packages"] });
    using second = await createTestRelease({ only: ["packages"] });
    const names = ["slipway-0.2.0-1.aarch64.rpm", "slipway-0.2.0-1.x86_64.rpm"];
    expect(first.lines.toSorted()).toEqual([...names, "slipway_0.2.0_amd64.deb", "slipway_0.2.0_arm64.deb"]);
    expect(readFileSync(join(second.out, "SHA256SUMS"), "utf8")).toBe(
      readFileSync(join(first.out, "SHA256SUMS"), "utf8"),
    );
  });

  test("[RL-4] omits artifacts that this machine cannot build, and fails if one of them was requested", async () => {
    const env = { PATH: "/nowhere" };
    using onlyPackages = await createTestRelease({ env, only: ["packages"] });
    expect([onlyPackages.isComplete, onlyPackages.lines]).toEqual([false, ["failed: packages: nfpm is not installed"]]);
    using everything = await createTestRelease({ env, programs: { "darwin-arm64": join(release.folder, "program") } });
    expect(everything.isComplete).toBe(true);
    expect(everything.lines).toContain("left out: image: no Linux program was built");
    expect(everything.lines).toContain("slipway-darwin-arm64.gz");
  });
});

/** Starts a fake npm registry with the packages of the release. */
const startFakeRegistry = () => {
  const folder = join(release.out, "npm");
  const files = [...new Bun.Glob("*.tgz").scanSync({ cwd: folder })];
  const readPackage = (file: string): { name: string; version: string } => {
    const { stdout } = Bun.spawnSync(["tar", "-xzOf", join(folder, file), "package/package.json"]);
    return JSON.parse(stdout.toString());
  };
  const packages = new Map(files.map((file) => [readPackage(file).name, { file, manifest: readPackage(file) }]));
  return Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch({ url }) {
      const path = decodeURIComponent(new URL(url).pathname).slice(1);
      if (path.endsWith(".tgz")) return new Response(Bun.file(join(folder, path)));
      const published = packages.get(path);
      if (!published) return new Response("{}", { status: 404 });
      const { file, manifest } = published;
      const integrity = `sha512-${new Bun.CryptoHasher("sha512").update(readFileSync(join(folder, file))).digest("base64")}`;
      const version = Object.assign(manifest, { dist: { tarball: new URL(`/${file}`, url).href, integrity } });
      const { name } = manifest;
      return Response.json({
        name,
        "dist-tags": { latest: version.version },
        versions: { [version.version]: version },
      });
    },
  });
};

testNeeding(
  [needs.node, needs.npm],
  "[RL-5] npx in an empty folder runs the client or, without arguments, a server, and passes on signals and exit codes",
  async () => {
    await using registry = startFakeRegistry();
    const folder = mkdtempSync(join(tmpdir(), "slipway-npx-"));
    const env = {
      PATH: process.env.PATH,
      HOME: folder,
      TEST_RUN_MARK: process.env.TEST_RUN_MARK,
      npm_config_registry: registry.url.href,
      npm_config_update_notifier: "false",
      SLIPWAY_ADDRESS: "127.0.0.1:0",
    };
    const runNpx = (args: string[], variables: Record<string, string> = {}) =>
      Bun.spawn(["npx", "--yes", "slipway", ...args], {
        cwd: folder,
        env: Object.assign({}, env, variables),
        stdio: ["ignore", "pipe", "pipe"],
      });
    try {
      const client = runNpx(["version", "--json"]);
      expect([await client.stdout.text(), await client.exited]).toEqual([
        expect.stringContaining(`Slipway v0.2.0 version --json as ${process.geteuid?.()} in ${folder}`),
        0,
      ]);
      const realProgram = { REAL_PROGRAM: toProgramCommand().join(" ") };
      const server = runNpx([], realProgram);
      let output = "";
      const decoder = new TextDecoder();
      for await (const chunk of server.stdout) {
        output += decoder.decode(chunk, { stream: true });
        if (output.includes("Data directory:")) break;
      }
      const [, url = ""] = / is listening on (\S+)/.exec(output) ?? [];
      expect((await fetch(`${url}/readyz`)).status).toBe(200);
      expect(output).toContain(`Data directory: ${join(folder, "data")}`);
      // npx does not pass on signals, but the server ends as soon as npx has ended.
      server.kill("SIGTERM");
      await server.exited;
      await until(async () => (await fetch(url).catch(() => "gone")) === "gone", {
        what: "the server has ended",
      });
      const file = Bun.spawnSync(["find", folder, "-name", "slipway.mjs"]).stdout.toString().trim();
      const launch = (...args: string[]) =>
        Bun.spawn([needs.node.file, file, ...args], {
          cwd: folder,
          env: Object.assign({}, env, realProgram),
          stdio: ["ignore", "pipe", "pipe"],
        });
      const wrongVerb = launch("no-such-verb");
      expect([await wrongVerb.exited, await wrongVerb.stderr.text()]).toEqual([
        2,
        expect.stringContaining("no-such-verb"),
      ]);
      const launcher = launch();
      await launcher.stdout.getReader().read();
      launcher.kill("SIGTERM");
      expect(await launcher.exited).toBe(0);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
);

type Descriptor = { digest: string; size: number };
type Index = { manifests: (Descriptor & { platform?: { architecture: string } })[] };

const busybox = Bun.which("busybox");

/** Packs a base layer for the tests: a shell, and a script in place of tini. */
const makeSmallBase = async (folder: string): Promise<string> => {
  const root = join(folder, "base");
  for (const path of ["bin", "usr/bin"]) mkdirSync(join(root, path), { recursive: true });
  copyFileSync(busybox as string, join(root, "bin/busybox"));
  for (const name of ["sh", "id", "touch"]) symlinkSync("busybox", join(root, "bin", name));
  writeFileSync(join(root, "usr/bin/tini"), '#!/bin/sh\nshift\nexec "$@"\n', { mode: 0o755 });
  await packFolder(root, join(folder, "base.tar"), 0);
  return join(folder, "base.tar");
};

testNeeding(
  [{ found: busybox !== null, reason: "needs the program busybox", file: "" }, needs.docker],
  "[RL-6] the image has its declared digests and sizes, and runs as an unprivileged user who owns its data",
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "slipway-image-"));
    const base = await makeSmallBase(folder);
    const program = '#!/bin/sh\ntouch /data/mine && echo "$* as $(id -u) in $PWD"\n';
    using imageRelease = await createTestRelease({ program, only: ["image"], bases: { amd64: base, arm64: base } });
    const layout = join(folder, "layout");
    mkdirSync(layout);
    const image = join(imageRelease.out, "slipway-0.2.0-image.tar");
    expect(Bun.spawnSync(["tar", "-xf", image, "-C", layout]).exitCode).toBe(0);
    const readBlob = async <T>({ digest, size }: Descriptor): Promise<T> => {
      const path = join(layout, "blobs", digest.replace(":", "/"));
      expect([`sha256:${await hashFile(path)}`, Bun.file(path).size]).toEqual([digest, size]);
      if (size >= 10_000) return undefined as T;
      return (await Bun.file(path)
        .json()
        .catch(() => undefined)) as T;
    };
    const index = JSON.parse(readFileSync(join(layout, "index.json"), "utf8")) as Index;
    const { manifests } = await readBlob<Index>(index.manifests[0] as Descriptor);
    expect(manifests.map(({ platform }) => platform?.architecture)).toEqual(["amd64", "arm64"]);
    for (const manifest of manifests) {
      const { config, layers } = await readBlob<{ config: Descriptor; layers: Descriptor[] }>(manifest);
      const { rootfs } = await readBlob<{ rootfs: { diff_ids: string[] } }>(config);
      for (const [i, layer] of layers.entries()) {
        await readBlob(layer);
        const compressed = readFileSync(join(layout, "blobs", layer.digest.replace(":", "/")));
        expect(`sha256:${new Bun.CryptoHasher("sha256").update(Bun.gunzipSync(compressed)).digest("hex")}`).toBe(
          rootfs.diff_ids[i] as string,
        );
      }
    }
    const docker = (...args: string[]) =>
      Bun.spawnSync(["docker", "--host", needs.docker.file, ...args], {
        env: { PATH: process.env.PATH, HOME: folder },
      });
    try {
      expect(docker("load", "--input", image).stdout.toString()).toContain("Loaded image: slipway:0.2.0");
      const container = docker("run", "--rm", "--network", "none", "slipway:0.2.0");
      expect(container.stdout.toString() + container.stderr).toBe("serve as 10001 in /data\n");
    } finally {
      docker("rmi", "--force", "slipway:0.2.0");
      rmSync(folder, { recursive: true, force: true });
    }
  },
);
