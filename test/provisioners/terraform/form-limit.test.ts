// The time limit of a form's plan counts the program's CPU time, not wall-clock time.
import { expect, test } from "bun:test";
import { systemClock } from "#base/clock.ts";
import { runCommand } from "#src/provisioners/terraform/command.ts";
import { tempDirectory } from "#test/support/server.ts";

const runLimited = async (script: string, limit: number): Promise<boolean> => {
  using temp = tempDirectory();
  const { signal } = new AbortController();
  const location = { program: "/bin/sh", folder: temp.path, cwd: temp.path, env: { PATH: process.env.PATH ?? "" } };
  // With a low priority on a busy machine, even an idle shell would reach the limit.
  const options = { clock: systemClock, signal, limit, grace: 100, limitsCpuTime: true, isLowPriority: false };
  return (await runCommand({ ...location, ...options, args: ["-c", script] })).exceededLimit;
};

test("[TF-50] only CPU time counts toward the limit, but a program that waits forever ends at ten times the limit", async () => {
  const [waits, works, childWorks, hangs] = await Promise.all([
    runLimited("sleep 1.2", 1_000),
    runLimited("while :; do :; done", 300),
    runLimited("(while :; do :; done) & wait", 300),
    runLimited("sleep 60", 100),
  ]);
  expect({ waits, works, worksBelow: childWorks, hangs }).toEqual({
    waits: false,
    works: true,
    worksBelow: true,
    hangs: true,
  });
});
