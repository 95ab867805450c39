// src/bootstrap.mjs under plain Node, on a simulated machine: a small project, and fake Bun and npm programs on the PATH that record their
// calls. Nothing is downloaded.
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
const PINNED_VERSION = "1.2.3";

const createMachine = () => {
  const path = mkdtempSync(join(tmpdir(), "slipway-machine-"));
  const [bin, project, calls] = [join(path, "bin"), join(path, "project"), join(path, "calls")];
  mkdirSync(bin);
  mkdirSync(join(project, "src"), { recursive: true });
  writeFileSync(calls, "");
  copyFileSync(BOOTSTRAP, join(project, "src", "bootstrap.mjs"));
  writeFileSync(
    join(project, "package.json"),
    JSON.stringify({ devDependencies: { bun: PINNED_VERSION, linter: "1.0.0" } }),
  );
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
    readCalls: () => readFileSync(calls, "utf8").trim().split("\n").filter(Boolean),
    /** Returns the script of a fake Bun with this version. It installs packages, or waits for SIGTERM as a server and then exits with 7. */
    makeBunScript: (version: string): string =>
      [
        `if [ "$1" = --version ]; then echo ${version}; exit 0; fi`,
        `echo "bun $*" >> ${calls}`,
        `if [ "$1" = install ]; then /bin/mkdir -p ${project}/node_modules; exit 0; fi`,
        "trap 'exit 7' TERM",
        "echo up",
        "while :; do /bin/sleep 0.05; done",
      ].join("\n"),
    makeNpmScript: (body: string): string => `echo "npm $*" >> ${calls}\n${body}`,
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
const serveUntilTerminated = async (machine: ReturnType<typeof createMachine>, ...args: string[]): Promise<number> => {
  const child = machine.start("serve", ...args);
  for await (const chunk of child.stdout) {
    expect(new TextDecoder().decode(chunk)).toBe("up\n");
    child.kill("SIGTERM");
  }
  return await child.exited;
};

testNeeding(
  [needs.node],
  "[RP-5] uses a Bun of the right version on the PATH, and passes on signals and the exit code",
  async () => {
    using machine = createMachine();
    machine.writeScript(join(machine.bin, "bun"), machine.makeBunScript(PINNED_VERSION));
    expect(await serveUntilTerminated(machine, "--log-level", "warn")).toBe(7);
    const [install, serve] = machine.readCalls();
    expect(install).toBe("bun install --frozen-lockfile --production --omit=peer");
    expect(serve).toMatch(/^bun --no-env-file \S+\/project\/src\/main\.ts serve --log-level warn$/);
  },
);

testNeeding(
  [needs.node],
  "[RP-5] installs packages again only when the lock file or the manifest has changed",
  async () => {
    using machine = createMachine();
    machine.writeScript(join(machine.bin, "bun"), machine.makeBunScript(PINNED_VERSION));
    const countInstalls = (): number => machine.readCalls().filter((call) => call.startsWith("bun install")).length;
    await serveUntilTerminated(machine);
    await serveUntilTerminated(machine);
    expect(countInstalls()).toBe(1);
    writeFileSync(join(machine.project, "bun.lock"), "{ }");
    await serveUntilTerminated(machine);
    expect(countInstalls()).toBe(2);
    expect(existsSync(join(machine.project, "package-lock.json"))).toBe(false);
  },
);

testNeeding(
  [needs.node],
  "[RP-5] npm start installs only the runtime packages, and keeps development packages from npm test",
  async () => {
    using machine = createMachine();
    machine.writeScript(join(machine.bin, "bun"), machine.makeBunScript(PINNED_VERSION));
    const listInstalls = (): string[] => machine.readCalls().filter((call) => call.startsWith("bun install"));
    await serveUntilTerminated(machine);
    const testRun = machine.start("test");
    for await (const _ of testRun.stdout) testRun.kill("SIGTERM");
    await testRun.exited;
    expect(listInstalls()).toEqual([
      "bun install --frozen-lockfile --production --omit=peer",
      "bun install --frozen-lockfile",
    ]);
    // After the first run, the program that the README uses exists.
    const linkedBun = Bun.spawnSync([join(machine.project, "node_modules", ".bin", "bun"), "--version"]);
    expect(linkedBun.stdout.toString().trim()).toBe(PINNED_VERSION);
    const linter = join(machine.project, "node_modules", "linter");
    mkdirSync(linter, { recursive: true });
    writeFileSync(join(linter, "package.json"), "{}");
    await serveUntilTerminated(machine);
    writeFileSync(join(machine.project, "bun.lock"), "{ }");
    await serveUntilTerminated(machine);
    expect(listInstalls().slice(2)).toEqual(["bun install --frozen-lockfile"]);
  },
);

testNeeding(
  [needs.node],
  "[RP-5] without the right version of Bun, npm downloads it once, without running install scripts",
  async () => {
    using machine = createMachine();
    machine.writeScript(join(machine.bin, "bun"), machine.makeBunScript("1.0.0"));
    // Without install scripts, npm creates a launcher that only fails, and the platform's program.
    const packages = join(machine.project, "node_modules", ".bun-runtime", "node_modules");
    const fakeBun = join(machine.bin, "fake-bun");
    machine.writeScript(fakeBun, machine.makeBunScript(PINNED_VERSION));
    const npm = [
      `case "$*" in *"get registry"*) echo https://registry.example/; exit 0;; esac`,
      `/bin/mkdir -p ${packages}/bun/bin ${packages}/@oven/bun-here-x64/bin`,
      `printf '#!/bin/sh\\nexit 1\\n' > ${packages}/bun/bin/bun.exe; /bin/chmod +x ${packages}/bun/bin/bun.exe`,
      `/bin/cp ${fakeBun} ${packages}/@oven/bun-here-x64/bin/bun`,
    ].join("\n");
    machine.writeScript(join(machine.bin, "npm"), machine.makeNpmScript(npm));
    expect(await serveUntilTerminated(machine)).toBe(7);
    expect(await serveUntilTerminated(machine)).toBe(7);
    const npmInstalls = machine.readCalls().filter((call) => call.startsWith("npm install"));
    expect(npmInstalls).toHaveLength(1);
    for (const part of [`bun@${PINNED_VERSION}`, "--ignore-scripts", "--no-package-lock", "--no-save"])
      expect(npmInstalls[0]).toContain(part);
  },
);

testNeeding([needs.node], "[RP-5] reports that npm failed, and starts nothing", async () => {
  using machine = createMachine();
  machine.writeScript(join(machine.bin, "npm"), machine.makeNpmScript("exit 1"));
  const child = machine.start("serve");
  expect(await child.stderr.text()).toContain("npm could not fetch Bun");
  expect(await child.exited).toBe(1);
  expect(machine.readCalls()).toHaveLength(1);
});

testNeeding([needs.node], "[RP-5] rejects an unknown command with exit code 2", async () => {
  using machine = createMachine();
  const child = machine.start("dance");
  expect(await child.stderr.text()).toContain('expected serve or test, got "dance"');
  expect(await child.exited).toBe(2);
});
