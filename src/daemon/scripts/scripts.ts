// The scripts of an agent by occasion: all start scripts at once, stop scripts when the daemon ends, cron scripts when their time has
// come (rules DM-5, DM-13).
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { pause } from "#base/retry.ts";
import { nextScriptTime } from "#base/schedule/cron.ts";
import type { Script, ScriptRunner, ScriptStatus } from "./script-runner.ts";

/** Timers cannot wait for months, and a wall clock may be set in the meantime. */
const MAX_WAIT_MS = 3_600_000;
/** For stop scripts without a timeout of their own: what waits for the daemon to end does not wait forever either. */
const STOP_LIMIT_MS = 20_000;

/**
 * Installs the owner's dotfiles, however that ends, then runs the start scripts side by side. Resolves when those that block login have
 * ended, or all of them when none does; the others go on. `ready`, `start_error` when one has failed, else `start_timeout` when one was ended
 * for its time (facts/platform 2.2).
 */
export const runStartScripts = async (
  scripts: readonly Script[],
  runner: ScriptRunner,
  signal: AbortSignal,
): Promise<"ready" | "start_error" | "start_timeout"> => {
  for (const script of scripts.filter((one) => one.isDotfiles)) await runner.run(script, "start");
  if (signal.aborted) return "ready";
  const starting = scripts.filter((one) => one.runOnStart && !one.isDotfiles);
  const runs = starting.map((script) => ({ script, end: runner.run(script, "start") }));
  const blocking = runs.filter(({ script }) => script.startBlocksLogin);
  const worst = findWorst(await Promise.all((blocking.length > 0 ? blocking : runs).map(({ end }) => end)));
  return worst === "ok" ? "ready" : `start_${worst}`;
};

/** Runs the stop scripts side by side: `off`, `shutdown_error` or `shutdown_timeout`. */
export const runStopScripts = async (
  scripts: readonly Script[],
  runner: ScriptRunner,
): Promise<"off" | "shutdown_error" | "shutdown_timeout"> => {
  const runs = scripts.filter((one) => one.runOnStop).map((script) => runner.run(script, "stop", STOP_LIMIT_MS));
  const worst = findWorst(await Promise.all(runs));
  return worst === "ok" ? "off" : `shutdown_${worst}`;
};

const findWorst = (ends: readonly ScriptStatus[]): "ok" | "error" | "timeout" => {
  if (ends.includes("exit_failure")) return "error";
  return ends.includes("timed_out") ? "timeout" : "ok";
};

/** Runs the script at its times (five fields, the machine's time zone) until the signal fires. A run that is due during one is left out. */
export const runCron = async (
  script: Script,
  runner: ScriptRunner,
  { clock, signal }: { clock: Clock; signal: AbortSignal },
): Promise<void> => {
  while (!signal.aborted) {
    const due = nextRun(script, clock.now());
    if (due === undefined) return;
    while (!signal.aborted && clock.now() < due) {
      await pause(clock, Math.min(due - clock.now(), MAX_WAIT_MS), signal);
    }
    if (!signal.aborted) await runner.run(script, "cron");
  }
};

const nextRun = ({ cron, displayName }: Script, now: number): number | undefined => {
  try {
    return nextScriptTime(cron, now);
  } catch (error) {
    log("daemon").error("the script {script} has a cron text that cannot be read: {error}", {
      script: displayName,
      error,
    });
    return undefined;
  }
};
