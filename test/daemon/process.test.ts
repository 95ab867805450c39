import { afterAll, describe, expect, test } from "bun:test";
import { systemClock } from "#base/clock.ts";
import { ProcessGroups } from "#src/daemon/scripts/groups.ts";
import { type ProcessOptions, runProcess } from "#src/daemon/scripts/process.ts";
import { until } from "#test/support/until.ts";
import { WatchedClock } from "./support/clock.ts";
import { isAlive, tempFolder } from "./support/daemon.ts";

const folder = tempFolder();
afterAll(() => folder[Symbol.dispose]());

/** Runs a shell script; `waitForOutput` resolves when its output contains the word. */
const startShell = (text: string, options: Partial<ProcessOptions> = {}) => {
  const clock = new WatchedClock();
  const groups = new ProcessGroups({ clock, agent_id: "t" });
  let output = "";
  let checkOutput = (): void => {};
  const end = runProcess({
    command: ["sh", "-c", text],
    directory: folder.path,
    env: { PATH: process.env.PATH ?? "", SLIPWAY_WORKSPACE_AGENT_ID: "t" },
    clock,
    groups,
    timeout_ms: 0,
    onOutput: (_from, bytes) => {
      output += new TextDecoder().decode(bytes);
      checkOutput();
    },
    ...options,
  });
  const waitForOutput = (word: string): Promise<void> =>
    new Promise((resolve) => {
      checkOutput = () => output.includes(word) && resolve();
      checkOutput();
    });
  return { clock, groups, end, waitForOutput, output: () => output };
};

describe("runProcess", () => {
  test("[DM-6] sends SIGTERM to the program and its children when it times out", async () => {
    const { clock, end, waitForOutput } = startShell("sleep 300 & echo up; wait", { timeout_ms: 60_000 });
    await waitForOutput("up");
    await clock.advance(59_999);
    await clock.advance(1);
    expect(await end).toEqual({ exit_code: 143, timed_out: true, pipes_left_open: false });
  });

  test("[DM-6] kills the program five seconds after the timeout if it ignores SIGTERM", async () => {
    const { clock, end, waitForOutput } = startShell("trap '' TERM; echo up; while :; do sleep 0.02; done", {
      timeout_ms: 1_000,
    });
    await waitForOutput("up");
    await clock.advance(5_999);
    await clock.advance(1);
    expect(await end).toEqual({ exit_code: 137, timed_out: true, pipes_left_open: false });
  });

  test("[DM-6] resolves ten seconds after the program exits if a child keeps its output open", async () => {
    const groups = new ProcessGroups({ clock: systemClock, agent_id: "t" });
    const { clock, end, waitForOutput, output } = startShell("sleep 300 & echo $!", { groups });
    await waitForOutput("\n");
    await until(() => clock.delays.includes(10_000));
    await clock.advance(10_000);
    expect(await end).toEqual({ exit_code: 0, timed_out: false, pipes_left_open: true });
    // The background process continues until the daemon ends.
    expect(isAlive(Number(output()))).toBe(true);
    await groups.endAll(2_000);
    await until(() => !isAlive(Number(output())));
  });

  test("[DM-6] rejects with the reason when the program cannot be started", async () => {
    await expect(startShell("", { command: ["/no/such/program"] }).end).rejects.toThrow("ENOENT");
  });
});
