// deploy/install.sh with a fake release server: programs that it installs, and programs that it refuses.
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
/** Responses that the server sends in place of files. */
const replacements = new Map<string, Uint8Array | string>();

beforeAll(async () => {
  release = await createTestRelease({ only: ["programs", "scripts"] });
  server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch({ url }) {
      const name = new URL(url).pathname.slice(1);
      const replacement = replacements.get(name);
      if (replacement !== undefined) return new Response(replacement);
      const file = Bun.file(join(release.out, name));
      return existsSync(join(release.out, name)) ? new Response(file) : new Response("no", { status: 404 });
    },
  });
});
afterAll(async () => {
  await server.stop(true);
  release[Symbol.dispose]();
});

/** Creates a folder that represents a machine with only the programs that the script may use. */
const createMachine = (missingPrograms: readonly string[] = [], scripts: Readonly<Record<string, string>> = {}) => {
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
    if (file !== null && !missingPrograms.includes(name) && !(name in scripts)) symlinkSync(file, join(bin, name));
  }
  for (const [name, body] of Object.entries(scripts)) writeFileSync(join(bin, name), body, { mode: 0o755 });
  const install = async (variables: Record<string, string> = {}) => {
    const child = Bun.spawn(["/bin/sh", join(release.out, "install.sh")], {
      env: Object.assign(
        { PATH: bin, HOME: folder, SLIPWAY_INSTALL_DIR: join(folder, "place"), SLIPWAY_RELEASE_URL: server.url.href },
        variables,
      ),
      stdio: ["ignore", "pipe", "pipe"],
    });
    const [output, errors, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    return { code, text: output + errors };
  };
  const target = join(folder, "place");
  return {
    folder,
    installFolder: target,
    install,
    /** Returns the names of the files in the program's folder. */
    listInstalled: () => (existsSync(target) ? readdirSync(target) : []),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
};

for (const [name, missingPrograms] of [
  ["OpenSSL", ["minisign"]],
  ["minisign", ["openssl"]],
] as const) {
  const need = name === "OpenSSL" ? needs.openssl : needs.minisign;
  testNeeding(
    [needs.curl, need],
    `[RL-7] installs a program verified by ${name}, and replaces an older one`,
    async () => {
      using machine = createMachine(missingPrograms);
      mkdirSync(machine.installFolder);
      writeFileSync(join(machine.installFolder, "slipway"), "older");
      expect(await machine.install()).toEqual({
        code: 0,
        text: expect.stringContaining(`as ${machine.installFolder}/slipway\n`),
      });
      expect(machine.listInstalled()).toEqual(["slipway"]);
      expect(Bun.spawnSync([join(machine.installFolder, "slipway"), "version"]).stdout.toString()).toContain(
        "Slipway v0.2.0 version",
      );
    },
  );

  testNeeding(
    [needs.curl, need],
    `[RL-7] refuses a program signed with another key when verified by ${name}, and keeps the existing one`,
    async () => {
      using machine = createMachine(missingPrograms);
      mkdirSync(machine.installFolder);
      writeFileSync(join(machine.installFolder, "slipway"), "older");
      const digest = await digestFile(join(release.out, "SHA256SUMS"));
      replacements.set("SHA256SUMS.minisig", signDigest(digest, "slipway 0.2.0 SHA256SUMS", generateSigningKey()));
      try {
        expect(await machine.install()).toEqual({ code: 1, text: expect.stringContaining("the signature is wrong") });
        replacements.delete("SHA256SUMS.minisig");
        replacements.set("SHA256SUMS", readFileSync(join(release.out, "SHA256SUMS"), "utf8").replace("a", "b"));
        expect(await machine.install()).toEqual({ code: 1, text: expect.stringContaining("the signature is wrong") });
      } finally {
        replacements.clear();
      }
      expect(readFileSync(join(machine.installFolder, "slipway"), "utf8")).toBe("older");
      expect(machine.listInstalled()).toEqual(["slipway"]);
    },
  );
}

testNeeding([needs.curl, needs.openssl], "[RL-7] refuses a partial download and an unknown system", async () => {
  using machine = createMachine();
  const name = `slipway-linux-${process.arch === "x64" ? "amd64" : "arm64"}.gz`;
  const program = readFileSync(join(release.out, name));
  replacements.set(name, program.subarray(0, program.length / 2));
  try {
    expect(await machine.install()).toEqual({
      code: 1,
      text: expect.stringContaining("was not downloaded completely"),
    });
  } finally {
    replacements.clear();
  }
  expect(machine.listInstalled()).toEqual([]);
  using unknownSystem = createMachine(["uname"], { uname: "#!/bin/sh\necho Plan9\n" });
  expect(await unknownSystem.install()).toEqual({
    code: 1,
    text: expect.stringContaining("there is no release for Plan9"),
  });
  using withoutServer = createMachine();
  const missingRelease = { SLIPWAY_RELEASE_URL: `${server.url.href}nowhere` };
  expect(await withoutServer.install(missingRelease)).toEqual({
    code: 1,
    text: expect.stringContaining("cannot fetch"),
  });
});

test("[RL-7] installs nothing without a program that checks signatures, or from an unsigned release", async () => {
  using machine = createMachine(["openssl", "minisign"]);
  expect(await machine.install()).toEqual({
    code: 1,
    text: expect.stringContaining("minisign or OpenSSL 3 is needed"),
  });
  expect(machine.listInstalled()).toEqual([]);
  using unsigned = await createTestRelease({ only: ["programs", "scripts"], key: undefined });
  const script = readFileSync(join(unsigned.out, "install.sh"), "utf8");
  expect(script).toContain("public_key=''");
});
