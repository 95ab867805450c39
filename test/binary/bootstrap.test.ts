// src/bootstrap.mjs under plain Node, on a simulated machine: a small project, and fake Bun and npm programs on the PATH that record how
// they are called. Nothing is downloaded.
import { expect } from "bun:test";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { needs, testNeeding } from "#test/support/needs.ts";

const BOOTSTRAP = fileURLToPath(new URL("../../src/bootstrap.mjs", import.meta.url));
const PINNED = "1.2.3";

const createMachine = () => {
  const path = mkdtempSync(join(tmpdir(), "slipway-machine-"));
  const [bin, project, calls] = [join(path, "bin"), join(path, "project"), join(path, "calls")];
  mkdirSync(bin);
  mkdirSync(join(project, "src"), { recursive: true });
  writeFileSync(calls, "");
  copyFileSync(BOOTSTRAP, join(project, "src", "bootstrap.mjs"));
  writeFileSync(join(project, "package.json"), JSON.stringify({ devDependencies: { bun: PINNED, linter: "1.0.0" } }));
  writeFileSync(join(project, "bun.lock"), "{}");
  symlinkSync(needs.node.file, join(bin, "node"));
  const writeScript = (file: string, body: string): void => {
    writeFileSync(file, `#!/bin/sh\n${body}\n`);
    chmodSync(file, 0o755);
  };
  return {
    bin,
    project,
    writeScript,
    calls: () => readFileSync(calls, "utf8").trim().split("\n").filter(Boolean),
    /** A fake Bun of this version: installs, and as the server waits for SIGTERM and then exits with 7. */
    bun: (version: string): string =>
      [
        `if [ "$1" = --version ]; then echo ${version}; exit 0; fi`,
        `echo "bun $*" >> ${calls}`,
        `if [ "$1" = install ]; then /bin/mkdir -p ${project}/node_modules; exit 0; fi`,
        "trap 'exit 7' TERM",
        "echo up",
        "while :; do /bin/sleep 0.05; done",
      ].join("\n"),
    npm: (body: string): string => `echo "npm $*" >> ${calls}\n${body}`,
    start: (...args: string[]) =>
      Bun.spawn([join(bin, "node"), "src/bootstrap.mjs", ...args], {
        cwd: project,
        env: { PATH: bin, HOME: path, TEST_RUN_MARK: process.env.TEST_RUN_MARK },
        stdio: ["ignore", "pipe", "pipe"],
      }),
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }),
  };
};

/** Starts the server, waits until it prints that it is up, and sends the SIGTERM of a service manager. */
const serveOnce = async (host: ReturnType<typeof createMachine>, ...args: string[]): Promise<number> => {
  const child = host.start("serve", ...args);
  for await (const chunk of child.stdout) {
    expect(new TextDecoder().decode(chunk)).toBe("up\n");
    child.kill("SIGTERM");
  }
  return await child.exited;
};

testNeeding(
  [needs.node],
  "[RP-5] a Bun of the right version on the PATH is used; signals and the exit code are passed on",
  async () => {
    using host = createMachine();
    host.writeScript(join(host.bin, "bun"), host.bun(PINNED));
    expect(await serveOnce(host, "--log-level", "warn")).toBe(7);
    const [install, serve] = host.calls();
    expect(install).toBe("bun install --frozen-lockfile --production --omit=peer");
    expect(serve).toMatch(/^bun --no-env-file \S+\/project\/src\/main\.ts serve --log-level warn$/);
  },
);

testNeeding(
  [needs.node],
  "[RP-5] packages are installed again only when the lock file or the manifest changed",
  async () => {
    using host = createMachine();
    host.writeScript(join(host.bin, "bun"), host.bun(PINNED));
    const countInstalls = (): number => host.calls().filter((call) => call.startsWith("bun install")).length;
    await serveOnce(host);
    await serveOnce(host);
    expect(countInstalls()).toBe(1);
    writeFileSync(join(host.project, "bun.lock"), "{ }");
    await serveOnce(host);
    expect(countInstalls()).toBe(2);
    expect(existsSync(join(host.project, "package-lock.json"))).toBe(false);
  },
);

testNeeding(
  [needs.node],
  "[RP-5] npm start installs only the runtime packages, and keeps development packages that npm test has installed",
  async () => {
    using host = createMachine();
    host.writeScript(join(host.bin, "bun"), host.bun(PINNED));
    const listInstalls = (): string[] => host.calls().filter((call) => call.startsWith("bun install"));
    await serveOnce(host);
    const testRun = host.start("test");
    for await (const _ of testRun.stdout) testRun.kill("SIGTERM");
    await testRun.exited;
    expect(listInstalls()).toEqual([
      "bun install --frozen-lockfile --production --omit=peer",
      "bun install --frozen-lockfile",
    ]);
    // The program that the README uses exists after the first run.
    const linked = Bun.spawnSync([join(host.project, "node_modules", ".bin", "bun"), "--version"]);
    expect(linked.stdout.toString().trim()).toBe(PINNED);
    const linter = join(host.project, "node_modules", "linter");
    mkdirSync(linter, { recursive: true });
    writeFileSync(join(linter, "package.json"), "{}");
    await serveOnce(host);
    writeFileSync(join(host.project, "bun.lock"), "{ }");
    await serveOnce(host);
    expect(listInstalls().slice(2)).toEqual(["bun install --frozen-lockfile"]);
  },
);

testNeeding(
  [needs.node],
  "[RP-5] without Bun, or with another version, npm downloads it once and runs no install script",
  async () => {
    using host = createMachine();
    host.writeScript(join(host.bin, "bun"), host.bun("1.0.0"));
    // npm's result without install scripts: a launcher that only prints an error, and the platform's program.
    const packages = join(host.project, "node_modules", ".bun-runtime", "node_modules");
    const fakeBun = join(host.bin, "fake-bun");
    host.writeScript(fakeBun, host.bun(PINNED));
    const npm = [
      `case "$*" in *"get registry"*) echo https://registry.example/; exit 0;; esac`,
      `/bin/mkdir -p ${packages}/bun/bin ${packages}/@oven/bun-here-x64/bin`,
      `printf '#!/bin/sh\\nexit 1\\n' > ${packages}/bun/bin/bun.exe; /bin/chmod +x ${packages}/bun/bin/bun.exe`,
      `/bin/cp ${fakeBun} ${packages}/@oven/bun-here-x64/bin/bun`,
    ].join("\n");
    host.writeScript(join(host.bin, "npm"), host.npm(npm));
    expect(await serveOnce(host)).toBe(7);
    expect(await serveOnce(host)).toBe(7);
    const npmInstalls = host.calls().filter((call) => call.startsWith("npm install"));
    expect(npmInstalls).toHaveLength(1);
    for (const part of [`bun@${PINNED}`, "--ignore-scripts", "--no-package-lock", "--no-save"])
      expect(npmInstalls[0]).toContain(part);
  },
);

testNeeding([needs.node], "[RP-5] reports that npm failed, and starts nothing", async () => {
  using host = createMachine();
  host.writeScript(join(host.bin, "npm"), host.npm("exit 1"));
  const child = host.start("serve");
  expect(await child.stderr.text()).toContain("npm could not fetch Bun");
  expect(await child.exited).toBe(1);
  expect(host.calls()).toHaveLength(1);
});

testNeeding([needs.node], "[RP-5] rejects an unknown command with exit code 2", async () => {
  using host = createMachine();
  const child = host.start("dance");
  expect(await child.stderr.text()).toContain('expected serve or test, got "dance"');
  expect(await child.exited).toBe(2);
});
