// The provisioner `local`, with real processes and folders. A shell script replaces the daemon.
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

/** A fake daemon that records its environment, starts a helper in another session, and exits with 0 when it gets SIGTERM. */
const DAEMON = `
env > "$HOME/seen.new"; setsid sleep 1000 & echo $! > "$HOME/helper"
trap 'echo stopped > "$HOME/stopped"; exit 0' TERM
mv "$HOME/seen.new" "$HOME/seen"; while :; do sleep 0.05; done`;
const STUBBORN_DAEMON = `trap '' TERM; touch "$HOME/seen"; while :; do sleep 0.05; done`;

const setUpWorkspace = (root: string, script = DAEMON, graceMs = 5_000) => {
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
  const readPid = (): number => JSON.parse(readFileSync(join(folder, "daemon.json"), "utf8")).pid;
  return { id, folder, home: join(folder, "home"), provisioner, run, readPid };
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
  const workspace = setUpWorkspace(temp.path);
  await workspace.run("start");
  await waitForFile(workspace.home, "seen");
  const environment = readFileSync(join(workspace.home, "seen"), "utf8");
  expect(environment).toContain(`HOME=${workspace.home}\n`);
  // A service has neither USER nor SHELL, so both come from the machine's user database.
  const shell = Bun.spawnSync(["sh", "-c", "getent passwd $(id -u) | cut -d: -f1,7"]).stdout.toString().trim();
  expect(shell).toBe(`${/^USER=(.*)$/m.exec(environment)?.[1]}:${/^SHELL=(.*)$/m.exec(environment)?.[1]}`);
  // The token itself is in a file that only the daemon's user can read.
  const [, file = ""] = /^SLIPWAY_AGENT_TOKEN_FILE=(.+)$/m.exec(environment) ?? [];
  const token = readFileSync(file, "utf8").trim();
  expect([token.length, statSync(file).mode & 0o777, environment.includes(token)]).toEqual([36, 0o600, false]);
  expect(environment).toContain("SLIPWAY_AGENT_URL=http://127.0.0.1:7080/\n");
  expect(environment).not.toContain("SECRET");
  expect(statSync(workspace.folder).mode & 0o777).toBe(0o700);
  expect(statSync(join(workspace.folder, "daemon.json")).mode & 0o777).toBe(0o600);
  await workspace.run("delete");
});

test("[LP-2] stop lets the daemon exit, then ends every process of the workspace, also in other sessions", async () => {
  using temp = tempDirectory();
  const workspace = setUpWorkspace(temp.path);
  await workspace.run("start");
  await waitForFile(workspace.home, "seen");
  const daemon = findMark(workspace.readPid());
  const helper = findMark(Number(readFileSync(join(workspace.home, "helper"), "utf8")));
  if (!daemon || !helper) throw new Error("the daemon or its helper is not running");
  await workspace.run("stop");
  expect(existsSync(join(workspace.home, "stopped"))).toBe(true);
  expect([isAlive(daemon), isAlive(helper)]).toEqual([false, false]);
  await workspace.run("stop");
  expect(existsSync(workspace.home)).toBe(true);
});

test("[LP-3] delete removes the folder without following links, and refuses a folder that is a link", async () => {
  using temp = tempDirectory();
  const outside = join(temp.path, "outside");
  mkdirSync(outside);
  writeFileSync(join(outside, "precious"), "");
  const root = join(temp.path, "workspaces");
  const workspace = setUpWorkspace(root);
  await workspace.run("start");
  await waitForFile(workspace.home, "seen");
  symlinkSync(outside, join(workspace.home, "link"));
  mkdirSync(join(workspace.home, "locked"), { mode: 0o500 });
  await workspace.run("delete");
  expect(existsSync(workspace.folder)).toBe(false);
  expect(existsSync(join(outside, "precious"))).toBe(true);
  const linked = setUpWorkspace(root);
  symlinkSync(outside, linked.folder);
  await expect(linked.run("delete")).rejects.toThrow("not a folder");
  expect(existsSync(join(outside, "precious"))).toBe(true);
});

test("[LP-4] a second start ends the first daemon, and a delete spares another process that has the daemon's old ID", async () => {
  using temp = tempDirectory();
  const workspace = setUpWorkspace(temp.path);
  await workspace.run("start");
  await waitForFile(workspace.home, "seen");
  const first = findMark(workspace.readPid());
  await workspace.run("start");
  const second = findMark(workspace.readPid());
  if (!first || !second) throw new Error("a daemon is not running");
  expect([isAlive(first), isAlive(second)]).toEqual([false, true]);
  await workspace.run("stop");
  const outsider = Bun.spawn(["/bin/sleep", "1000"]);
  const record = { pid: outsider.pid, started: "another time", token: uuid() };
  writeFileSync(join(workspace.folder, "daemon.json"), JSON.stringify(record));
  await workspace.run("delete");
  expect(findMark(outsider.pid)).toBeDefined();
  outsider.kill();
});

test("[LP-5] a daemon that does not exit within the grace period is killed", async () => {
  using temp = tempDirectory();
  const workspace = setUpWorkspace(temp.path, STUBBORN_DAEMON, 200);
  await workspace.run("start");
  await waitForFile(workspace.home, "seen");
  const daemon = findMark(workspace.readPid());
  await workspace.run("delete");
  expect(daemon && isAlive(daemon)).toBe(false);
});

test("[LP-6] recovery restarts daemons that died while the server was down, and leaves running daemons alone", async () => {
  using temp = tempDirectory();
  const workspace = setUpWorkspace(temp.path);
  await workspace.run("start");
  const firstPid = workspace.readPid();
  await workspace.provisioner.recover([{ id: workspace.id, state: null }]);
  expect(workspace.readPid()).toBe(firstPid);
  const mark = findMark(firstPid);
  process.kill(firstPid, "SIGKILL");
  await until(() => !mark || !isAlive(mark));
  await workspace.provisioner.recover([{ id: workspace.id, state: null }]);
  expect(workspace.readPid()).not.toBe(firstPid);
  expect(findMark(workspace.readPid())).toBeDefined();
  await workspace.run("delete");
});

test("[LP-7] a canceled start leaves nothing running", async () => {
  using temp = tempDirectory();
  const workspace = setUpWorkspace(temp.path);
  const controller = new AbortController();
  const cancelingReport: Report = { log: () => controller.abort(new Error("cancelled")), timing: () => {} };
  const request = {
    job_id: uuid(),
    build_id: uuid(),
    build_number: 1,
    transition: "start" as const,
    workspace: { id: workspace.id, name: "dev" },
    owner: { id: uuid(), username: "ada", email: "ada@example.com" },
    manifest: { ...ECHO, provisioner: "local" as const },
    parameters: {},
    agents: [{ name: "dev", id: uuid(), token: uuid() }],
    access_url: "http://127.0.0.1:7080/",
    state: null,
  };
  await expect(workspace.provisioner.run(request, cancelingReport, controller.signal)).rejects.toThrow("cancelled");
  expect(existsSync(join(workspace.folder, "daemon.json"))).toBe(false);
});
