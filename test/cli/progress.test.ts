// The progress of long operations, which only a terminal shows.
import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Clock, systemClock, type Timer } from "#base/clock.ts";
import { Progress } from "#src/cli/progress.ts";
import { openClientWorld, signInAs } from "./client-world.ts";

test("[CV-22] a terminal's progress line is updated; a pipe gets only the steps", () => {
  let tick: () => void = () => {};
  const timer: Timer = { cancel: () => {} } as Timer;
  const clock: Clock = {
    ...systemClock,
    monotonic: () => 0,
    every: (_, run) => {
      tick = run as () => void;
      return timer;
    },
  };
  const renderProgress = (isTerminal: boolean): string => {
    let text = "";
    const printError = (message: string): void => {
      text += message;
    };
    using progress = new Progress({ printError, isTerminal, clock, env: { TERM: "xterm" } });
    progress.setStatus("uploading 3 files");
    progress.setDetail("64 KiB of 2.0 MiB");
    tick();
    progress.setDetail("2.0 MiB of 2.0 MiB");
    tick();
    return text;
  };
  expect(renderProgress(true)).toMatch(
    /⠋ uploading 3 files\r.*⠙ uploading 3 files, 64 KiB of 2\.0 MiB\r.*, 2\.0 MiB of 2\.0 MiB$/,
  );
  expect(renderProgress(false)).toBe("uploading 3 files\n");
});

test("[CV-22] backup and restore show progress on a terminal", async () => {
  await using world = await openClientWorld();
  await signInAs(world);
  const folder = join(world.home, "large");
  mkdirSync(folder);
  writeFileSync(
    join(folder, "template.yaml"),
    "provisioner: echo\nresources:\n  - name: main\n    agents: [{name: main}]\n",
  );
  writeFileSync(join(folder, "data.bin"), crypto.getRandomValues(new Uint8Array(60_000)).toHex().repeat(20));
  expect(await world.runOk(["templates", "push", folder])).toContain("Created the template large");
  const data = world.server.directory;
  await using backup = world.runOnTerminal(`slipway backup '${world.home}/a.tar' --data-dir '${data}'`);
  await backup.until(/backing up [\s\S]*a\.tar {2}[\d.]+ MiB/);
  expect(await backup.exited).toBe(0);
  await using restore = world.runOnTerminal(`slipway restore '${world.home}/a.tar' --data-dir '${world.home}/new'`);
  await restore.until(/restoring [\s\S]*Restored the backup/);
  expect(await restore.exited).toBe(0);
  const piped = await world.run(["restore", `${world.home}/a.tar`, "--check"]);
  expect(piped).toMatchObject({ code: 0, err: "" });
});
