// deploy/install.sh against a fake release server: what it installs, and what it rejects.
import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { digestFile, signDigest } from "#base/minisign.ts";
import { generateSigningKey } from "#src/release/signing-key.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { createTestRelease } from "#test/support/release.ts";

let release: Awaited<ReturnType<typeof createTestRelease>>;
let server: Bun.Server<undefined>;
/** Responses of the server in place of files. */
const instead = new Map<string, Uint8Array | string>();

beforeAll(async () => {
  release = await createTestRelease({ only: ["programs", "scripts"] });
  server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch({ url }) {
      const name = new URL(url).pathname.slice(1);
      const other = instead.get(name);
      if (other !== undefined) return new Response(other);
      const file = Bun.file(join(release.out, name));
      return existsSync(join(release.out, name)) ? new Response(file) : new Response("no", { status: 404 });
    },
  });
});
afterAll(async () => {
  await server.stop(true);
  release[Symbol.dispose]();
});

/** A machine with only the programs that the script may use. */
const machine = (without: readonly string[] = [], scripts: Readonly<Record<string, string>> = {}) => {
  const folder = mkdtempSync(join(tmpdir(), "slipway-install-"));
  const bin = join(folder, "bin");
  mkdirSync(bin);
  const tools = [
    "sh",
    "uname",
    "id",
    "mktemp",
    "rm",
    "curl",
    "awk",
    "cut",
    "sha256sum",
    "mkdir",
    "gzip",
    "chmod",
    "mv",
    "ls",
  ];
  for (const name of [...tools, "sed", "tail", "grep", "openssl", "minisign"]) {
    const file = Bun.which(name);
    if (file !== null && !without.includes(name) && !(name in scripts)) symlinkSync(file, join(bin, name));
  }
  for (const [name, body] of Object.entries(scripts)) writeFileSync(join(bin, name), body, { mode: 0o755 });
  const install = async (more: Record<string, string> = {}) => {
    const child = Bun.spawn(["/bin/sh", join(release.out, "install.sh")], {
      env: Object.assign(
        { PATH: bin, HOME: folder, SLIPWAY_INSTALL_DIR: join(folder, "place"), SLIPWAY_RELEASE_URL: server.url.href },
        more,
      ),
      stdio: ["ignore", "pipe", "pipe"],
    });
    const [output, errors, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    return { code, text: output + errors };
  };
  const target = join(folder, "place");
  return {
    folder,
    place: target,
    install,
    /** Returns the content of the program's folder. */
    there: () => (existsSync(target) ? readdirSync(target) : []),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
};

for (const [name, without] of [
  ["OpenSSL", ["minisign"]],
  ["minisign", ["openssl"]],
] as const) {
  const need = name === "OpenSSL" ? needs.openssl : needs.minisign;
  testNeeding(
    [needs.curl, need],
    `[RL-7] installs a program verified by ${name}, and replaces an older one`,
    async () => {
      using one = machine(without);
      mkdirSync(one.place);
      writeFileSync(join(one.place, "slipway"), "older");
      expect(await one.install()).toEqual({ code: 0, text: expect.stringContaining(`as ${one.place}/slipway\n`) });
      expect(one.there()).toEqual(["slipway"]);
      expect(Bun.spawnSync([join(one.place, "slipway"), "version"]).stdout.toString()).toContain(
        "Slipway v0.2.0 version",
      );
    },
  );

  testNeeding(
    [needs.curl, need],
    `[RL-7] refuses a program signed with another key, verified by ${name}, and keeps the existing one`,
    async () => {
      using one = machine(without);
      mkdirSync(one.place);
      writeFileSync(join(one.place, "slipway"), "older");
      const digest = await digestFile(join(release.out, "SHA256SUMS"));
      instead.set("SHA256SUMS.minisig", signDigest(digest, "slipway 0.2.0 SHA256SUMS", generateSigningKey()));
      try {
        expect(await one.install()).toEqual({ code: 1, text: expect.stringContaining("the signature is wrong") });
        instead.delete("SHA256SUMS.minisig");
        instead.set("SHA256SUMS", readFileSync(join(release.out, "SHA256SUMS"), "utf8").replace("a", "b"));
        expect(await one.install()).toEqual({ code: 1, text: expect.stringContaining("the signature is wrong") });
      } finally {
        instead.clear();
      }
      expect(readFileSync(join(one.place, "slipway"), "utf8")).toBe("older");
      expect(one.there()).toEqual(["slipway"]);
    },
  );
}

testNeeding([needs.curl, needs.openssl], "[RL-7] refuses a partial download and an unknown system", async () => {
  using one = machine();
  const name = `slipway-linux-${process.arch === "x64" ? "amd64" : "arm64"}.gz`;
  const whole = readFileSync(join(release.out, name));
  instead.set(name, whole.subarray(0, whole.length / 2));
  try {
    expect(await one.install()).toEqual({ code: 1, text: expect.stringContaining("was not downloaded completely") });
  } finally {
    instead.clear();
  }
  expect(one.there()).toEqual([]);
  using other = machine(["uname"], { uname: "#!/bin/sh\necho Plan9\n" });
  expect(await other.install()).toEqual({ code: 1, text: expect.stringContaining("there is no release for Plan9") });
  using away = machine();
  const nowhere = { SLIPWAY_RELEASE_URL: `${server.url.href}nowhere` };
  expect(await away.install(nowhere)).toEqual({ code: 1, text: expect.stringContaining("cannot fetch") });
});

test("[RL-7] installs nothing without a program to check the signature, and nothing from a release without one", async () => {
  using one = machine(["openssl", "minisign"]);
  expect(await one.install()).toEqual({ code: 1, text: expect.stringContaining("minisign or OpenSSL 3 is needed") });
  expect(one.there()).toEqual([]);
  using unsigned = await createTestRelease({ only: ["programs", "scripts"], key: undefined });
  const script = readFileSync(join(unsigned.out, "install.sh"), "utf8");
  expect(script).toContain("public_key=''");
});
