// What code of a template tries with the folder and the programs of its own run.
import { expect, test } from "bun:test";
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "#base/clock.ts";
import { runCommand } from "#src/provisioners/terraform/command.ts";
import { Session } from "#src/provisioners/terraform/session.ts";
import { tempDirectory } from "#test/support/server.ts";
import { processesWith } from "#test/support/terraform.ts";
import { until } from "#test/support/until.ts";

test("[TF-28] a state that is a link to a file of the server's is no state, and what is stored is not written through it", () => {
  using place = tempDirectory();
  const session = new Session(join(place.path, "run"));
  session.keepState("{}");
  expect(session.state()).toBe("{}");
  const file = join(session.work, "terraform.tfstate");
  const other = join(place.path, "other");
  writeFileSync(other, "the server's own");
  rmSync(file);
  symlinkSync(other, file);
  expect(session.state()).toBeUndefined();
  session.keepState("{}");
  expect([session.state(), readFileSync(other, "utf8")]).toEqual(["{}", "the server's own"]);
});

test("[TF-33] [TF-28] programs of a run give way to the server, each tells its own, and none leads the next one's words elsewhere", async () => {
  using place = tempDirectory();
  const { signal } = new AbortController();
  const run = async (script: string) => {
    const where = { program: "/bin/sh", folder: place.path, cwd: place.path, env: { PATH: process.env.PATH ?? "" } };
    return runCommand({ ...where, args: ["-c", script], clock: systemClock, signal, limit: 60_000, grace: 1_000 });
  };
  expect((await run("nice; echo first >&2")).output).toBe("10\n");
  const second = await run("echo second; ln -sf other stdout");
  expect([second.output, second.errors]).toEqual(["second\n", ""]);
  const other = join(place.path, "other");
  writeFileSync(other, "the server's own");
  await expect(run("echo third")).rejects.toThrow("ELOOP");
  expect(readFileSync(other, "utf8")).toBe("the server's own");
});

test("[TF-28] what a plan has started ends with it; what an apply has started may be the workspace", async () => {
  using place = tempDirectory();
  const program = join(place.path, "program");
  writeFileSync(program, `#!/bin/sh\nsleep 600 &\n`, { mode: 0o755 });
  const clock = systemClock;
  const run = async (command: string): Promise<string> => {
    const folder = join(place.path, command);
    mkdirSync(folder);
    const { signal } = new AbortController();
    const limits = { limit: 60_000, grace: 1_000 };
    const env = { PATH: process.env.PATH ?? "", WHERE: folder };
    await runCommand({ program, args: [command], folder, cwd: folder, env, clock, signal, ...limits });
    return `WHERE=${folder}`;
  };
  const planned = await run("plan");
  await until(() => processesWith(planned).length === 0);
  const left = processesWith(await run("apply"));
  expect(left.length).toBe(1);
  for (const pid of left) process.kill(pid, "SIGKILL");
});
