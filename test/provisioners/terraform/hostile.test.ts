// Attacks by a template's code on its run's folder and programs.
import { expect, test } from "bun:test";
import { mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { getPriority } from "node:os";
import { join } from "node:path";
import { systemClock } from "#base/clock.ts";
import { findChildMark, findMark } from "#src/provisioners/local/process-table.ts";
import { type BuildRun, build } from "#src/provisioners/terraform/build.ts";
import { runCommand } from "#src/provisioners/terraform/command.ts";
import { CommandPriority, getNiceness } from "#src/provisioners/terraform/cpu-priority.ts";
import { InitTurns } from "#src/provisioners/terraform/init-turns.ts";
import { Session } from "#src/provisioners/terraform/session.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { tempDirectory } from "#test/support/server.ts";
import { findProcesses } from "#test/support/terraform.ts";
import { until } from "#test/support/until.ts";

const STATE = JSON.stringify({ version: 4, lineage: "a", serial: 2 });

test("[TF-28] rejects a state that links to the server's file, and writes nothing through the link", async () => {
  using temp = tempDirectory();
  const session = new Session(join(temp.path, "run"));
  await session.writeState(STATE);
  expect(await session.readState()).toBe(STATE);
  const file = join(session.work, "terraform.tfstate");
  const serverFile = join(temp.path, "other");
  writeFileSync(serverFile, "the server's own");
  rmSync(file);
  symlinkSync(serverFile, file);
  expect(await session.readState()).toBeUndefined();
  await session.writeState(STATE);
  expect([await session.readState(), readFileSync(serverFile, "utf8")]).toEqual([STATE, "the server's own"]);
});

test("[TF-38] sets an unreadable state aside and never uses it, but uses a state that Terraform wrote to another file", async () => {
  using temp = tempDirectory();
  const session = new Session(join(temp.path, "builds", "run"));
  await session.writeState(STATE.slice(0, 20));
  expect([await session.readState(), await session.isEmpty()]).toEqual([undefined, false]);
  // A state that a person pushed is not moved, because it is also stored.
  expect(await session.moveUnreadableState(STATE.slice(0, 20))).toBeUndefined();
  const movedState = (await session.moveUnreadableState(STATE)) ?? "";
  expect(movedState).toStartWith(join(temp.path, "unreadable", "run-"));
  expect(readFileSync(movedState, "utf8")).toBe(STATE.slice(0, 20));
  expect(await session.isEmpty()).toBe(true);
  // A build with such a state fails instead of starting from scratch.
  for (const transition of ["start", "delete"]) {
    const request = { state: STATE.slice(0, 20), transition, terraform: {} };
    const run = { session, request } as unknown as BuildRun;
    await expect(build(run)).rejects.toThrow("cannot be read");
  }
  const newer = STATE.replace("2}", "3}");
  writeFileSync(join(session.work, "errored.tfstate"), newer);
  expect(await session.readState()).toBe(newer);
  await session.writeState(STATE);
  expect(await session.readState()).toBe(newer);
});

test("[TF-48] a delete does not treat a state that OpenTofu has encrypted as empty", async () => {
  const plain = JSON.stringify({ version: 4, lineage: "a", serial: 2, resources: [] });
  const encrypted = JSON.stringify({
    serial: 2,
    lineage: "a",
    meta: {},
    encrypted_data: "AAAA",
    encryption_version: "v0",
  });
  const buildAndCatchLeft = async (state: string): Promise<unknown> => {
    using temp = tempDirectory();
    const session = new Session(join(temp.path, "builds", "run"));
    const request = { state, transition: "delete", terraform: {} };
    const run = { session, request, program: { name: "tofu" } } as unknown as BuildRun;
    return build(run).catch((error: Error & { left?: unknown }) => error.left);
  };
  expect(await buildAndCatchLeft(plain)).toEqual({ state: null });
  expect(await buildAndCatchLeft(encrypted)).toEqual({ state: encrypted });
});

test("[TF-33] [TF-28] a run's programs have a low priority and separate output, and cannot redirect the next one's output", async () => {
  using temp = tempDirectory();
  const { signal } = new AbortController();
  const run = async (script: string, folder = temp.path) => {
    const where = { program: "/bin/sh", folder, cwd: folder, env: { PATH: process.env.PATH ?? "" } };
    return runCommand({ ...where, args: ["-c", script], clock: systemClock, signal, limit: 60_000, grace: 1_000 });
  };
  const session = "/proc/self/autogroup";
  // The priority is lowered once the program runs. Systems without this file have no such priority.
  const waitForLowPriority = `until [ ! -e ${session} ] || grep -q "nice 13$" ${session}; do sleep 0.01; done`;
  // The niceness is added to that of the tests.
  const niceness = Math.min(19, 13 + getPriority());
  expect(await run(`nice; ${waitForLowPriority}; echo first >&2`)).toMatchObject({
    code: 0,
    output: `${niceness}\n`,
    exceededLimit: false,
  });
  const second = await run("echo second; ln -sf other stdout");
  expect([second.output, second.errors]).toEqual(["second\n", ""]);
  // Two programs in parallel each get a lower priority than a single program, even if one started earlier.
  const waitForLowerPriority = `until [ ! -e ${session} ] || grep -q "nice 16$" ${session}; do sleep 0.01; done`;
  const meet = (ownFile: string, otherFile: string) =>
    `${waitForLowerPriority}; touch ${ownFile}; until [ -e ${otherFile} ]; do sleep 0.01; done`;
  const [a, b] = [join(temp.path, "a"), join(temp.path, "b")];
  for (const folder of [a, b]) mkdirSync(folder);
  const results = await Promise.all([run(meet(`${a}/seen`, `${b}/seen`), a), run(meet(`${b}/seen`, `${a}/seen`), b)]);
  expect(results.map(({ code }) => code)).toEqual([0, 0]);
  const serverFile = join(temp.path, "other");
  writeFileSync(serverFile, "the server's own");
  await expect(run("echo third")).rejects.toThrow("ELOOP");
  expect(readFileSync(serverFile, "utf8")).toBe("the server's own");
});

test("[TF-33] parallel commands together get about the CPU weight of one, up to the system's maximum niceness", () => {
  expect([0, 1, 2, 3, 5, 8, 10, 100].map(getNiceness)).toEqual([13, 13, 16, 18, 19, 19, 19, 19]);
  using first = new CommandPriority();
  using second = new CommandPriority();
  // An apply may start the workspace, which continues to run when the other commands have ended.
  expect([first.toPrefix("plan").at(-1), second.toPrefix("apply").at(-1)]).toEqual(["16", "10"]);
});

test("[TF-28] identifies an exited command by its start time", async () => {
  const child = Bun.spawn(["true"]);
  // The child is not awaited, because it would then no longer exist as a zombie.
  const waitForExit = `until grep -q "^State:.Z" /proc/${child.pid}/status; do sleep 0.01; done`;
  Bun.spawnSync(["sh", "-c", waitForExit], { timeout: 10_000 });
  expect([findMark(child.pid), findChildMark(child.pid)]).toEqual([
    undefined,
    { pid: child.pid, started: expect.any(String) },
  ]);
  await child.exited;
});

test("[TF-28] a plan's processes end with it; an apply's processes continue, because they may be the workspace", async () => {
  using temp = tempDirectory();
  const program = join(temp.path, "program");
  // One process stays in the run's group, and one leaves it.
  writeFileSync(program, `#!/bin/sh\nsleep 600 &\nsetsid sleep 600 &\n`, { mode: 0o755 });
  const clock = systemClock;
  const run = async (command: string): Promise<string> => {
    const folder = join(temp.path, command);
    mkdirSync(folder);
    const { signal } = new AbortController();
    const limits = { limit: 60_000, grace: 1_000 };
    const env = { PATH: process.env.PATH ?? "", WHERE: folder };
    await runCommand({ program, args: [command], folder, cwd: folder, env, clock, signal, ...limits });
    return `WHERE=${folder}`;
  };
  const planned = await run("plan");
  await until(() => findProcesses(planned).length === 0);
  const applied = await run("apply");
  const remaining = await until(() => findProcesses(applied).length === 2 && findProcesses(applied));
  for (const pid of remaining) process.kill(pid, "SIGKILL");
});

test("[TF-39] a template that prints endlessly and ignores stop requests is killed before it fills the disk", async () => {
  using temp = tempDirectory();
  const script = 'trap "" INT; while :; do head -c 200000 /dev/zero | tr "\\0" "x\\n"; echo; done';
  let lines = 0;
  let longestPauseMs = 0;
  let lastBeatAt = performance.now();
  const heartbeat = setInterval(() => {
    longestPauseMs = Math.max(longestPauseMs, performance.now() - lastBeatAt);
    lastBeatAt = performance.now();
  }, 5);
  const { signal } = new AbortController();
  const { path: folder } = temp;
  const result = await runCommand({
    program: "/bin/sh",
    args: ["-c", script],
    folder,
    cwd: folder,
    env: { PATH: process.env.PATH ?? "" },
    clock: systemClock,
    signal,
    limit: 60_000,
    grace: 500,
    maxOutputBytes: 2_000_000,
    line: () => void lines++,
  });
  clearInterval(heartbeat);
  expect([result.exceededOutput, result.code]).toEqual([true, 1]);
  expect(lines).toBeGreaterThan(1);
  expect(statSync(join(folder, "stdout")).size).toBeLessThan(100_000_000);
  expect(longestPauseMs).toBeLessThan(1_000);
});

test("[TF-39] a run whose output cannot be accepted is interrupted, and has exited before its failure is reported", async () => {
  using temp = tempDirectory();
  const { path: folder } = temp;
  const { signal } = new AbortController();
  const script = `trap 'echo kept > ended; exit 1' INT; echo first; while :; do sleep 0.01; done`;
  const env = { PATH: process.env.PATH ?? "", WHERE: folder };
  const line = (): void => {
    throw new Error("too large");
  };
  const options = { program: "/bin/sh", args: ["-c", script], folder, cwd: folder, env };
  const run = runCommand({ ...options, clock: systemClock, signal, limit: 60_000, grace: 10_000, line });
  await expect(run).rejects.toThrow("too large");
  expect([readFileSync(join(folder, "ended"), "utf8"), findProcesses(`WHERE=${folder}`)]).toEqual(["kept\n", []]);
});

test("[TF-39] a run whose registry does not respond delays other runs for at most half a minute, and canceled runs not at all", async () => {
  const clock = new ManualClock(0);
  const turns = new InitTurns();
  const { signal } = new AbortController();
  const end = await turns.waitForTurn(clock, signal);
  const canceled = new AbortController();
  const second = turns.waitForTurn(clock, canceled.signal);
  const third = turns.waitForTurn(clock, signal);
  canceled.abort(new Error("cancelled"));
  await expect(second).rejects.toThrow("cancelled");
  await clock.advance(30_000);
  expect(await third).toBeUndefined();
  end?.();
  // A run does not wait if there are no others.
  expect(await turns.waitForTurn(clock, signal)).toBeDefined();
});
