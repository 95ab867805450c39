// Runs one hook of the workspace: the request on standard input, the answer on standard output, without the daemon's secrets in the
// environment. Time, output and concurrency are limited, and the hook's child processes end with it (rule HK-20).
import type { Clock } from "#base/clock.ts";
import { AppError } from "#base/errors.ts";
import type { HookRun } from "#schema/agents/workspace-hooks.ts";
import type { Environment } from "../environment.ts";
import type { ProcessGroups } from "../scripts/groups.ts";
import { runProcess } from "../scripts/process.ts";
import type { WorkspaceHook } from "./declared.ts";

export const MAX_OUTPUT_BYTES = 64 * 1024;
const MAX_RUNNING = 16;
/** The exit code that shells return for a program that cannot be started. */
const CANNOT_START_CODE = 126;

/** Variables that are passed to a hook. Other variables of the daemon may contain keys. */
const PASSED_VARIABLES =
  /^(PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_[A-Z]+|TZ|TMPDIR|TERM|SLIPWAY|SLIPWAY_WORKSPACE_[A-Z_]+)$/;

type Options = {
  readonly clock: Clock;
  readonly groups: ProcessGroups;
  readonly env: Environment;
  readonly directory: string;
};

export class HookPrograms {
  readonly #options: Options;
  #running = 0;

  constructor(options: Options) {
    this.#options = options;
  }

  /** Returns at the latest after the hook's timeout, even if the program cannot be ended. Rejects with 429 while too many run. */
  async run({ name, event, command, timeout_ms }: WorkspaceHook, request: string): Promise<HookRun> {
    if (this.#running >= MAX_RUNNING)
      throw new AppError("too_many_requests", `${MAX_RUNNING} hooks are already running.`);
    const { clock, groups, env, directory } = this.#options;
    const earlyResult = Promise.withResolvers<HookRun>();
    const timer = clock.after(timeout_ms, () => earlyResult.resolve(toHookRun("timeout")));
    const outputChunks: Uint8Array[] = [];
    let size = 0;
    let group: number | undefined;
    this.#running += 1;
    const run = runProcess({
      command: ["sh", "-c", command],
      directory,
      clock,
      groups,
      timeout_ms,
      env: { ...filterEnvironment(env), SLIPWAY_HOOK_NAME: name, SLIPWAY_HOOK_EVENT: event },
      stdin: new TextEncoder().encode(request),
      ends_group: true,
      onStart: (pid) => {
        group = pid;
      },
      onOutput: (from, bytes) => {
        if (from === "stderr" || size > MAX_OUTPUT_BYTES) return;
        size += bytes.byteLength;
        outputChunks.push(bytes);
        if (size <= MAX_OUTPUT_BYTES) return;
        if (group !== undefined) groups.end(group);
        earlyResult.resolve(toHookRun("too_long"));
      },
    }).then(
      ({ exit_code, timed_out }): HookRun => {
        if (timed_out) return toHookRun("timeout");
        if (size > MAX_OUTPUT_BYTES) return toHookRun("too_long");
        if (exit_code !== 0) return toHookRun("failed", exit_code);
        return { outcome: "ok", exit_code, output: Buffer.concat(outputChunks).toString("base64") };
      },
      () => toHookRun("failed", CANNOT_START_CODE),
    );
    void run.finally(() => {
      this.#running -= 1;
    });
    return Promise.race([run, earlyResult.promise]).finally(() => timer.cancel());
  }
}

const toHookRun = (outcome: HookRun["outcome"], exit_code = -1): HookRun => ({ outcome, exit_code, output: "" });

const filterEnvironment = (env: Environment): Environment =>
  Object.fromEntries(Object.entries(env).filter(([name]) => PASSED_VARIABLES.test(name)));
