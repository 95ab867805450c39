// Attacks of a template's code on the folder and programs of its own run.
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

test("[TF-28] a state that links to a file of the server is rejected, and nothing is written through it", async () => {
  using temp = tempDirectory();
  const session = new Session(join(temp.path, "run"));
  await session.writeState(STATE);
  expect(await session.readState()).toBe(STATE);
  const file = join(session.work, "terraform.tfstate");
  const other = join(temp.path, "other");
  writeFileSync(other, "the server's own");
  rmSync(file);
  symlinkSync(other, file);
  expect(await session.readState()).toBeUndefined();
  await session.writeState(STATE);
  expect([await session.readState(), readFileSync(other, "utf8")]).toEqual([STATE, "the server's own"]);
});

test("[TF-38] sets an unreadable state aside and never uses it; a state that could only be written next to its file is used", async () => {
  using temp = tempDirectory();
  const session = new Session(join(temp.path, "builds", "run"));
  await session.writeState(STATE.slice(0, 20));
  expect([await session.readState(), await session.isEmpty()]).toEqual([undefined, false]);
  // A state equal to the stored one, pushed by a person, is not lost.
  expect(await session.moveUnreadableState(STATE.slice(0, 20))).toBeUndefined();
  const aside = (await session.moveUnreadableState(STATE)) ?? "";
  expect(aside).toStartWith(join(temp.path, "unreadable", "run-"));
  expect(readFileSync(aside, "utf8")).toBe(STATE.slice(0, 20));
  expect(await session.isEmpty()).toBe(true);
  // Nor does a build start from scratch when such a state was pushed.
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

test("[TF-48] a delete of a state that OpenTofu has encrypted plans it with the template instead of treating it as empty", async () => {
  const plain = JSON.stringify({ version: 4, lineage: "a", serial: 2, resources: [] });
  const sealed = JSON.stringify({
    serial: 2,
    lineage: "a",
    meta: {},
    encrypted_data: "AAAA",
    encryption_version: "v0",
  });
  const ended = async (state: string): Promise<unknown> => {
    using temp = tempDirectory();
    const session = new Session(join(temp.path, "builds", "run"));
    const request = { state, transition: "delete", terraform: {} };
    const run = { session, request, program: { name: "tofu" } } as unknown as BuildRun;
    return build(run).catch((error: Error & { left?: unknown }) => error.left);
  };
  expect(await ended(plain)).toEqual({ state: null });
  expect(await ended(sealed)).toEqual({ state: sealed });
});

test("[TF-33] [TF-28] programs of a run have a lower priority than the server, have separate output, and cannot redirect the next one's output", async () => {
  using temp = tempDirectory();
  const { signal } = new AbortController();
  const run = async (script: string, folder = temp.path) => {
    const where = { program: "/bin/sh", folder, cwd: folder, env: { PATH: process.env.PATH ?? "" } };
    return runCommand({ ...where, args: ["-c", script], clock: systemClock, signal, limit: 60_000, grace: 1_000 });
  };
  const session = "/proc/self/autogroup";
  // Its priority is lowered once it runs; a system without such a file need not be waited for.
  const behind = `until [ ! -e ${session} ] || grep -q "nice 13$" ${session}; do sleep 0.01; done`;
  // In addition to the tests' own niceness.
  const niceness = Math.min(19, 13 + getPriority());
  expect(await run(`nice; ${behind}; echo first >&2`)).toMatchObject({
    code: 0,
    output: `${niceness}\n`,
    tooLong: false,
  });
  const second = await run("echo second; ln -sf other stdout");
  expect([second.output, second.errors]).toEqual(["second\n", ""]);
  // With two in parallel, each gets a lower priority than one alone, including the earlier one.
  const further = `until [ ! -e ${session} ] || grep -q "nice 16$" ${session}; do sleep 0.01; done`;
  const meet = (own: string, its: string) => `${further}; touch ${own}; until [ -e ${its} ]; do sleep 0.01; done`;
  const [a, b] = [join(temp.path, "a"), join(temp.path, "b")];
  for (const folder of [a, b]) mkdirSync(folder);
  const both = await Promise.all([run(meet(`${a}/seen`, `${b}/seen`), a), run(meet(`${b}/seen`, `${a}/seen`), b)]);
  expect(both.map(({ code }) => code)).toEqual([0, 0]);
  const other = join(temp.path, "other");
  writeFileSync(other, "the server's own");
  await expect(run("echo third")).rejects.toThrow("ELOOP");
  expect(readFileSync(other, "utf8")).toBe("the server's own");
});

test("[TF-33] parallel commands together get about the CPU weight of one; niceness never exceeds the system's maximum", () => {
  expect([0, 1, 2, 3, 5, 8, 10, 100].map(getNiceness)).toEqual([13, 13, 16, 18, 19, 19, 19, 19]);
  using first = new CommandPriority();
  using second = new CommandPriority();
  // An apply may start the workspace, which keeps running when the others have ended.
  expect([first.toPrefix("plan").at(-1), second.toPrefix("apply").at(-1)]).toEqual(["16", "10"]);
});

test("[TF-28] a command that has already exited is identified by its start time, and so are its children", async () => {
  const child = Bun.spawn(["true"]);
  // Not awaited; otherwise it would have been reaped.
  const ended = `until grep -q "^State:.Z" /proc/${child.pid}/status; do sleep 0.01; done`;
  Bun.spawnSync(["sh", "-c", ended], { timeout: 10_000 });
  expect([findMark(child.pid), findChildMark(child.pid)]).toEqual([
    undefined,
    { pid: child.pid, started: expect.any(String) },
  ]);
  await child.exited;
});

test("[TF-28] processes that a plan has started end with it; processes of an apply continue, because they may be the workspace", async () => {
  using temp = tempDirectory();
  const program = join(temp.path, "program");
  // One in the group of the run, and one that has left it.
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
  const left = await until(() => findProcesses(applied).length === 2 && findProcesses(applied));
  for (const pid of left) process.kill(pid, "SIGKILL");
});

test("[TF-39] a template that prints endlessly and ignores stop requests fills no disk, delays no other build and is killed", async () => {
  using temp = tempDirectory();
  const script = 'trap "" INT; while :; do head -c 200000 /dev/zero | tr "\\0" "x\\n"; echo; done';
  let lines = 0;
  let longest = 0;
  let last = performance.now();
  const beat = setInterval(() => {
    longest = Math.max(longest, performance.now() - last);
    last = performance.now();
  }, 5);
  const { signal } = new AbortController();
  const { path: folder } = temp;
  const ended = await runCommand({
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
  clearInterval(beat);
  expect([ended.tooMuch, ended.code]).toEqual([true, 1]);
  expect(lines).toBeGreaterThan(1);
  expect(statSync(join(folder, "stdout")).size).toBeLessThan(100_000_000);
  expect(longest).toBeLessThan(1_000);
});

test("[TF-39] a run whose lines cannot be accepted, as when its state has grown too large, is interrupted and has exited before the failure is reported", async () => {
  using temp = tempDirectory();
  const { path: folder } = temp;
  const { signal } = new AbortController();
  const script = `trap 'echo kept > ended; exit 1' INT; echo first; while :; do sleep 0.01; done`;
  const env = { PATH: process.env.PATH ?? "", WHERE: folder };
  const line = (): void => {
    throw new Error("too large");
  };
  const where = { program: "/bin/sh", args: ["-c", script], folder, cwd: folder, env };
  const run = runCommand({ ...where, clock: systemClock, signal, limit: 60_000, grace: 10_000, line });
  await expect(run).rejects.toThrow("too large");
  expect([readFileSync(join(folder, "ended"), "utf8"), findProcesses(`WHERE=${folder}`)]).toEqual(["kept\n", []]);
});

test("[TF-39] a run whose registry does not answer delays others for half a minute at most, and canceled ones not at all", async () => {
  const clock = new ManualClock(0);
  const turns = new InitTurns();
  const { signal } = new AbortController();
  const end = await turns.waitForTurn(clock, signal);
  const cancelled = new AbortController();
  const second = turns.waitForTurn(clock, cancelled.signal);
  const third = turns.waitForTurn(clock, signal);
  cancelled.abort(new Error("cancelled"));
  await expect(second).rejects.toThrow("cancelled");
  await clock.advance(30_000);
  expect(await third).toBeUndefined();
  end?.();
  // Without others, a run does not wait.
  expect(await turns.waitForTurn(clock, signal)).toBeDefined();
});
