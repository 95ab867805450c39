// The limit of planning a form counts the program's CPU time, not wall-clock time.
import { expect, test } from "bun:test";
import { systemClock } from "#base/clock.ts";
import { runCommand } from "#src/provisioners/terraform/command.ts";
import { tempDirectory } from "#test/support/server.ts";

const runLimited = async (script: string, limit: number): Promise<boolean> => {
  using temp = tempDirectory();
  const { signal } = new AbortController();
  const where = { program: "/bin/sh", folder: temp.path, cwd: temp.path, env: { PATH: process.env.PATH ?? "" } };
  // At a low priority on a busy machine, even an idle shell would reach the limit.
  const common = { clock: systemClock, signal, limit, grace: 100, limitsCpuTime: true, isLowPriority: false };
  return (await runCommand({ ...where, ...common, args: ["-c", script] })).tooLong;
};

test("[TF-50] waiting does not count toward the limit, CPU time does, and a program that waits forever ends at ten times the limit", async () => {
  const [waits, works, worksBelow, hangs] = await Promise.all([
    runLimited("sleep 1.2", 1_000),
    runLimited("while :; do :; done", 300),
    runLimited("(while :; do :; done) & wait", 300),
    runLimited("sleep 60", 100),
  ]);
  expect({ waits, works, worksBelow, hangs }).toEqual({ waits: false, works: true, worksBelow: true, hangs: true });
});
