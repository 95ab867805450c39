// Runs Terraform's commands in a session, with their arguments and limits, and reports their errors (facts/terraform 1.5).

import { mkdir } from "node:fs/promises";
import type { Clock } from "#base/clock.ts";
import { parseJson } from "#base/json/read.ts";
import type { Mask } from "#base/secrets/mask.ts";
import { ProvisionError, type Report } from "../provisioner.ts";
import {
  type CommandOptions,
  type CommandResult,
  describeKill,
  MAX_OUTPUT_BYTES,
  type OnLine,
  runCommand,
} from "./command.ts";
import { toCommonVariables } from "./environment.ts";
import type { InitTurns } from "./init-turns.ts";
import type { PlanDocument, StateDocument } from "./mapping/document.ts";
import { NewTokens } from "./new-tokens.ts";
import { isAtLeast, type Program } from "./program.ts";
import { Progress } from "./progress.ts";
import { detachSharedProviders } from "./providers.ts";
import type { Session } from "./session.ts";
import { TERRAFORM_LIMITS } from "./state-json.ts";

/** Milliseconds. */
export type Limits = { readonly step: number; readonly apply: number; readonly grace: number };

export type EngineOptions = {
  readonly program: Program;
  readonly clock: Clock;
  /** Variables passed on from this process. */
  readonly env: Readonly<Record<string, string>>;
  readonly cliConfig: string | undefined;
  /** The provider cache shared by all runs. */
  readonly pluginCache: string;
  /** Includes Terraform's own log. */
  readonly verbose?: boolean;
  readonly turns: InitTurns;
  readonly limits: Limits;
  readonly isLowPriority: boolean;
};

/** The reason for a failure if the command reports an interrupt that this server has not sent. */
const INTERRUPTED_REASON = "it was interrupted from outside, by SIGINT or SIGTERM.";

/** Runs several commands of one session with one report. */
export class Engine {
  readonly #options: EngineOptions;
  readonly #session: Session;
  readonly #signal: AbortSignal;
  readonly #mask: Mask;
  readonly #report: Report;

  constructor(
    options: EngineOptions,
    run: { readonly session: Session; readonly signal: AbortSignal; readonly mask: Mask; readonly report: Report },
  ) {
    this.#options = options;
    this.#session = run.session;
    this.#signal = run.signal;
    this.#mask = run.mask;
    this.#report = run.report;
  }

  async init(stage: string): Promise<void> {
    const jsonArgs = isAtLeast(this.#options.program, 1, 9) ? ["-json"] : [];
    const { cliConfig, pluginCache, turns, clock } = this.#options;
    await mkdir(pluginCache, { recursive: true, mode: 0o700 });
    const endTurn = await turns.waitForTurn(clock, this.#signal);
    try {
      await this.#measureTime("init", async () => {
        const args = ["init", "-no-color", "-input=false", ...jsonArgs];
        await this.#runLogged(args, toCommonVariables(cliConfig, endTurn && pluginCache), stage, "init");
        await detachSharedProviders(this.#session.work, pluginCache);
        await this.#rejectRemoteState();
      });
    } finally {
      endTurn?.();
    }
  }

  /**
   * Rejects templates that store their state elsewhere. The server would find no state, so a delete would remove nothing, and a stop would
   * create everything again.
   */
  async #rejectRemoteState(): Promise<void> {
    const backend = await this.#session.readBackend();
    if (backend === undefined) return;
    throw new ProvisionError(
      `The template keeps its state elsewhere (backend "${backend}"). Remove that block: this server stores the state of each workspace, encrypted.`,
    );
  }

  /** Validates the files without values. Throws ProvisionError. */
  async validate(): Promise<void> {
    await this.#measureTime("validate", () => this.#readOutput(["validate", "-no-color"]));
  }

  /** Writes the plan to the session's plan file. `env`: the workspace's variables for the provider. */
  async plan(stage: string, env: Readonly<Record<string, string>>, destroy = false): Promise<void> {
    const args = ["plan", "-no-color", "-input=false", "-json", "-refresh=true", `-out=${this.#session.planFile}`];
    const planOptions = [`-var-file=${this.#session.variablesFile}`, ...(destroy ? ["-destroy"] : [])];
    await this.#measureTime("plan", () =>
      this.#runLogged([...args, ...planOptions], this.#toQuietEnvironment(env), stage, "plan"),
    );
  }

  async apply(stage: string, env: Readonly<Record<string, string>>): Promise<void> {
    const args = ["apply", "-no-color", "-auto-approve", "-input=false", "-json", this.#session.planFile];
    const newTokens = await NewTokens.open({
      session: this.#session,
      mask: this.#mask,
      clock: this.#options.clock,
      signal: this.#signal,
    });
    await this.#runLogged(args, this.#toQuietEnvironment(env), stage, "apply", this.#options.limits.apply, (text) =>
      newTokens.maskBefore(text),
    );
  }

  async readPlan(): Promise<PlanDocument> {
    return this.#readDocument<PlanDocument>(["show", "-json", "-no-color", this.#session.planFile]);
  }

  async readState(): Promise<StateDocument> {
    return this.#readDocument<StateDocument>(["show", "-json", "-no-color"]);
  }

  /** Returns the dependency graph as DOT. */
  async loadGraph(): Promise<string> {
    const typeArgs = isAtLeast(this.#options.program, 1, 7) ? ["-type=plan"] : [];
    return this.#measureTime("graph", () => this.#readOutput(["graph", ...typeArgs]));
  }

  #toQuietEnvironment(env: Readonly<Record<string, string>>): Record<string, string> {
    const { cliConfig, pluginCache } = this.#options;
    // TF_LOG is set only for plan and apply, because the output of other commands is parsed (facts/terraform 1.21).
    return {
      ...toCommonVariables(cliConfig, pluginCache),
      ...(this.#options.verbose ? { TF_LOG: "JSON" } : {}),
      ...env,
    };
  }

  async #readDocument<T>(args: readonly string[]): Promise<T> {
    const text = await this.#readOutput(args);
    try {
      return parseJson(text, TERRAFORM_LIMITS) as T;
    } catch (error) {
      const problem = (error as Error).message;
      throw new ProvisionError(`The output of ${this.#options.program.name} ${args[0]} ${problem}`);
    }
  }

  async #readOutput(args: readonly string[]): Promise<string> {
    const { cliConfig, pluginCache } = this.#options;
    const result = await this.#runCommand({
      args,
      env: toCommonVariables(cliConfig, pluginCache),
      limit: this.#options.limits.step,
    });
    if (result.code !== 0) this.#throwFailure(args[0] ?? "", result, [this.#mask.hide(result.errors.trim())]);
    return result.output;
  }

  async #runLogged(
    args: readonly string[],
    env: Readonly<Record<string, string>>,
    stage: string,
    step: string,
    limit = this.#options.limits.step,
    onLine?: OnLine,
  ): Promise<void> {
    const progress = new Progress(this.#report, this.#mask, () => this.#options.clock.now());
    const line = (text: string): void | Promise<void> => {
      const handled = onLine?.(text);
      return handled ? handled.then(() => progress.line(text, stage, step)) : progress.line(text, stage, step);
    };
    const result = await this.#runCommand({ args, env, limit, line });
    // A command that failed to start reports the reason on its last line.
    const lastLine = progress.crash ?? this.#mask.hide(result.errors.trim().split("\n").at(-1) ?? "");
    const reasons = progress.reasons.length > 0 ? progress.reasons : [lastLine];
    if (result.code !== 0)
      this.#throwFailure(args[0] ?? "", result, progress.wasInterrupted ? [INTERRUPTED_REASON, ...reasons] : reasons);
  }

  async #runCommand(command: Pick<CommandOptions, "args" | "env" | "limit" | "line">): Promise<CommandResult> {
    this.#signal.throwIfAborted();
    const { program, clock, env, limits, isLowPriority } = this.#options;
    const { folder, work } = this.#session;
    return runCommand({
      ...command,
      program: program.path,
      folder,
      cwd: work,
      clock,
      signal: this.#signal,
      grace: limits.grace,
      isLowPriority,
      env: { ...env, ...command.env },
    });
  }

  #throwFailure(
    command: string,
    { code, killedBy, exceededLimit, exceededOutput }: CommandResult,
    reasons: readonly string[],
  ): never {
    this.#signal.throwIfAborted();
    const { name } = this.#options.program;
    const minutes = Math.round((command === "apply" ? this.#options.limits.apply : this.#options.limits.step) / 60_000);
    if (exceededLimit)
      throw new ProvisionError(`${name} ${command} took longer than ${minutes} minutes and was stopped.`);
    if (exceededOutput)
      throw new ProvisionError(`${name} ${command} printed more than ${MAX_OUTPUT_BYTES} bytes and was stopped.`);
    // The errors that a killed command printed before are not the reason why it ended.
    if (killedBy) throw new ProvisionError(describeKill(`${name} ${command}`, killedBy));
    const nonEmptyReasons = reasons.filter((reason) => reason !== "");
    const [first = `it exited with ${code}.`] = nonEmptyReasons;
    const suffix = nonEmptyReasons.length > 1 ? ` (and ${nonEmptyReasons.length - 1} more, see the log)` : "";
    throw new ProvisionError(`${name} ${command}: ${first.slice(0, 2000)}${suffix}`);
  }

  async #measureTime<T>(step: string, work: () => Promise<T>): Promise<T> {
    const { clock, program } = this.#options;
    const started_at = clock.now();
    try {
      return await work();
    } finally {
      const timing = { action: step, resource: `${program.name} ${step}`, source: program.name, stage: step };
      this.#report.timing({ ...timing, started_at, ended_at: clock.now() });
    }
  }
}
