// The provisioner `local` with a fake daemon: a shell script. Real processes, real folders.
import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, statSync, symlinkSync, watch, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "#base/clock.ts";
import { uuid } from "#base/ids.ts";
import { LocalProvisioner } from "#src/provisioners/local/local.ts";
import { findMark, isAlive } from "#src/provisioners/local/process-table.ts";
import type { ProvisionRequest, Report, Transition } from "#src/provisioners/provisioner.ts";
import { tempDirectory } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { ECHO } from "#test/support/workspaces.ts";

const NO_REPORT: Report = { log: () => {}, timing: () => {} };
const neverAborted = new AbortController().signal;

/** A fake daemon that records its environment, starts a helper in its own session, and succeeds on request. */
const DAEMON = `
env > "$HOME/seen.new"; setsid sleep 1000 & echo $! > "$HOME/helper"
trap 'echo stopped > "$HOME/stopped"; exit 0' TERM
mv "$HOME/seen.new" "$HOME/seen"; while :; do sleep 0.05; done`;
const STUBBORN = `trap '' TERM; touch "$HOME/seen"; while :; do sleep 0.05; done`;

const setup = (root: string, script = DAEMON, graceMs = 5_000) => {
  const id = uuid();
  const provisioner = new LocalProvisioner({
    root,
    clock: systemClock,
    accessUrl: () => new URL("http://127.0.0.1:7080/"),
    command: ["/bin/sh", "-c", script],
    environment: { PATH: process.env.PATH, SECRET: "must not leak" },
    graceMs,
  });
  const request = (transition: Transition): ProvisionRequest => ({
    job_id: uuid(),
    build_id: uuid(),
    build_number: 1,
    transition,
    workspace: { id, name: "dev" },
    owner: { id: uuid(), username: "ada", email: "ada@example.com" },
    manifest: { ...ECHO, provisioner: "local" },
    parameters: {},
    agents: transition === "start" ? [{ name: "dev", id: uuid(), token: uuid() }] : [],
    access_url: "http://127.0.0.1:7080/",
    state: null,
  });
  const folder = join(root, id);
  const run = (transition: Transition) => provisioner.run(request(transition), NO_REPORT, neverAborted);
  const pid = (): number => JSON.parse(readFileSync(join(folder, "daemon.json"), "utf8")).pid;
  return { id, folder, home: join(folder, "home"), provisioner, run, pid };
};

/** Resolves once the file exists. */
const waitForFile = async (folder: string, name: string): Promise<void> => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const watcher = watch(folder, () => existsSync(join(folder, name)) && resolve());
  if (existsSync(join(folder, name))) resolve();
  await promise;
  watcher.close();
};

test("[LP-1] start runs the daemon in its own session, with only the environment that a shell needs", async () => {
  using temp = tempDirectory();
  const one = setup(temp.path);
  await one.run("start");
  await waitForFile(one.home, "seen");
  const seen = readFileSync(join(one.home, "seen"), "utf8");
  expect(seen).toContain(`HOME=${one.home}\n`);
  // As the machine knows them: a service has neither USER nor SHELL.
  const shell = Bun.spawnSync(["sh", "-c", "getent passwd $(id -u) | cut -d: -f1,7"]).stdout.toString().trim();
  expect(shell).toBe(`${/^USER=(.*)$/m.exec(seen)?.[1]}:${/^SHELL=(.*)$/m.exec(seen)?.[1]}`);
  // The token itself is in a file that only the daemon's user can read.
  const [, file = ""] = /^SLIPWAY_AGENT_TOKEN_FILE=(.+)$/m.exec(seen) ?? [];
  const token = readFileSync(file, "utf8").trim();
  expect([token.length, statSync(file).mode & 0o777, seen.includes(token)]).toEqual([36, 0o600, false]);
  expect(seen).toContain("SLIPWAY_AGENT_URL=http://127.0.0.1:7080/\n");
  expect(seen).not.toContain("SECRET");
  expect(statSync(one.folder).mode & 0o777).toBe(0o700);
  expect(statSync(join(one.folder, "daemon.json")).mode & 0o777).toBe(0o600);
  await one.run("delete");
});

test("[LP-2] stop lets the daemon exit on its own, then ends every process of the workspace, also in other sessions", async () => {
  using temp = tempDirectory();
  const one = setup(temp.path);
  await one.run("start");
  await waitForFile(one.home, "seen");
  const daemon = findMark(one.pid());
  const helper = findMark(Number(readFileSync(join(one.home, "helper"), "utf8")));
  if (!daemon || !helper) throw new Error("the daemon or its helper is not running");
  await one.run("stop");
  expect(existsSync(join(one.home, "stopped"))).toBe(true);
  expect([isAlive(daemon), isAlive(helper)]).toEqual([false, false]);
  await one.run("stop");
  expect(existsSync(one.home)).toBe(true);
});

test("[LP-3] delete removes the folder and follows no link out of it; a folder that is a link is refused", async () => {
  using temp = tempDirectory();
  const outside = join(temp.path, "outside");
  mkdirSync(outside);
  writeFileSync(join(outside, "precious"), "");
  const root = join(temp.path, "workspaces");
  const one = setup(root);
  await one.run("start");
  await waitForFile(one.home, "seen");
  symlinkSync(outside, join(one.home, "link"));
  mkdirSync(join(one.home, "locked"), { mode: 0o500 });
  await one.run("delete");
  expect(existsSync(one.folder)).toBe(false);
  expect(existsSync(join(outside, "precious"))).toBe(true);
  const other = setup(root);
  symlinkSync(outside, other.folder);
  await expect(other.run("delete")).rejects.toThrow("not a folder");
  expect(existsSync(join(outside, "precious"))).toBe(true);
});

test("[LP-4] a second start ends the first daemon; a process that only has its ID is left alone", async () => {
  using temp = tempDirectory();
  const one = setup(temp.path);
  await one.run("start");
  await waitForFile(one.home, "seen");
  const first = findMark(one.pid());
  await one.run("start");
  const second = findMark(one.pid());
  if (!first || !second) throw new Error("a daemon is not running");
  expect([isAlive(first), isAlive(second)]).toEqual([false, true]);
  await one.run("stop");
  const outsider = Bun.spawn(["/bin/sleep", "1000"]);
  const record = { pid: outsider.pid, started: "another time", token: uuid() };
  writeFileSync(join(one.folder, "daemon.json"), JSON.stringify(record));
  await one.run("delete");
  expect(findMark(outsider.pid)).toBeDefined();
  outsider.kill();
});

test("[LP-5] a daemon that does not exit within the grace period is killed", async () => {
  using temp = tempDirectory();
  const one = setup(temp.path, STUBBORN, 200);
  await one.run("start");
  await waitForFile(one.home, "seen");
  const daemon = findMark(one.pid());
  await one.run("delete");
  expect(daemon && isAlive(daemon)).toBe(false);
});

test("[LP-6] daemons that died while the server was down are restarted with their token; running ones are left alone", async () => {
  using temp = tempDirectory();
  const one = setup(temp.path);
  await one.run("start");
  const before = one.pid();
  await one.provisioner.recover([{ id: one.id, state: null }]);
  expect(one.pid()).toBe(before);
  const mark = findMark(before);
  process.kill(before, "SIGKILL");
  await until(() => !mark || !isAlive(mark));
  await one.provisioner.recover([{ id: one.id, state: null }]);
  expect(one.pid()).not.toBe(before);
  expect(findMark(one.pid())).toBeDefined();
  await one.run("delete");
});

test("[LP-7] a canceled start leaves nothing running", async () => {
  using temp = tempDirectory();
  const one = setup(temp.path);
  const abort = new AbortController();
  const stop: Report = { log: () => abort.abort(new Error("cancelled")), timing: () => {} };
  const start = { ...ECHO, provisioner: "local" as const };
  const request = {
    job_id: uuid(),
    build_id: uuid(),
    build_number: 1,
    transition: "start" as const,
    workspace: { id: one.id, name: "dev" },
    owner: { id: uuid(), username: "ada", email: "ada@example.com" },
    manifest: start,
    parameters: {},
    agents: [{ name: "dev", id: uuid(), token: uuid() }],
    access_url: "http://127.0.0.1:7080/",
    state: null,
  };
  await expect(one.provisioner.run(request, stop, abort.signal)).rejects.toThrow("cancelled");
  expect(existsSync(join(one.folder, "daemon.json"))).toBe(false);
});
