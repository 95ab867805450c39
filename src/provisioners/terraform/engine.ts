// The commands of Terraform in a session (facts/terraform 1.5): what each is called with, what it may cost, what its failure means.
import { mkdir } from "node:fs/promises";
import type { Clock } from "#base/clock.ts";
import { ProvisionError, type Report } from "../provisioner.ts";
import { type CommandOptions, type Ended, killedWords, OUTPUT_LIMIT, runCommand, type TakeLine } from "./command.ts";
import { quiet } from "./environment.ts";
import type { InitTurns } from "./init-turns.ts";
import type { PlanDocument, StateDocument } from "./mapping/document.ts";
import { type Mask, secretsInState } from "./mask.ts";
import { isAtLeast, type Program } from "./program.ts";
import { Progress } from "./progress.ts";
import { keepOwnProviders } from "./providers.ts";
import type { Session } from "./session.ts";
import { tokensIn } from "./state-tokens.ts";

/** Milliseconds. */
export type Limits = { readonly step: number; readonly apply: number; readonly grace: number };

export type EngineOptions = {
  readonly program: Program;
  readonly clock: Clock;
  /** Passed on from this process. */
  readonly env: Readonly<Record<string, string>>;
  readonly cliConfig: string | undefined;
  /** Where providers are kept for all runs. */
  readonly pluginCache: string;
  /** Terraform tells of its own steps, too. */
  readonly verbose?: boolean;
  readonly turns: InitTurns;
  readonly limits: Limits;
  readonly givesWay: boolean;
};

/** Where neither this server nor its limits have asked it to end. */
const INTERRUPTED = "it was interrupted from outside, by SIGINT or SIGTERM.";
const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/i;

/** One that is changed keeps its token, so that it counts as one whose token was not seen: then every state is read. */
const isAgentMade = (line: string): boolean =>
  line.includes('"type":"apply_complete"') &&
  line.includes('"resource_type":"coder_agent"') &&
  !line.includes('"action":"delete"');

/** One run of several commands, for one report. */
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
    const json = isAtLeast(this.#options.program, 1, 9) ? ["-json"] : [];
    const { cliConfig, pluginCache, turns, clock } = this.#options;
    await mkdir(pluginCache, { recursive: true, mode: 0o700 });
    const endTurn = await turns.take(clock, this.#signal);
    try {
      await this.#timed("init", async () => {
        const args = ["init", "-no-color", "-input=false", ...json];
        await this.#logged(args, quiet(cliConfig, endTurn && pluginCache), stage, "init");
        await keepOwnProviders(this.#session.work, pluginCache);
        await this.#keepsState();
      });
    } finally {
      endTurn?.();
    }
  }

  /** A state that lies elsewhere would be taken for none: a delete would remove nothing, and a stop make everything again. */
  async #keepsState(): Promise<void> {
    const backend = await this.#session.backend();
    if (backend === undefined) return;
    throw new ProvisionError(
      `The template keeps its state elsewhere (backend "${backend}"). Remove that block: this server stores the state of each workspace, encrypted.`,
    );
  }

  /** Checks the files without any values. Throws ProvisionError. */
  async validate(): Promise<void> {
    await this.#timed("validate", () => this.#read(["validate", "-no-color"]));
  }

  /** Plans into the session's plan file. `env`: what the provider reads of the workspace. */
  async plan(stage: string, env: Readonly<Record<string, string>>, destroy = false): Promise<void> {
    const args = ["plan", "-no-color", "-input=false", "-json", "-refresh=true", `-out=${this.#session.planFile}`];
    const more = [`-var-file=${this.#session.variablesFile}`, ...(destroy ? ["-destroy"] : [])];
    await this.#timed("plan", () => this.#logged([...args, ...more], this.#full(env), stage, "plan"));
  }

  async apply(stage: string, env: Readonly<Record<string, string>>): Promise<void> {
    const args = ["apply", "-no-color", "-auto-approve", "-input=false", "-json", this.#session.planFile];
    const before = new Set(tokensIn((await this.#session.state()) ?? null));
    const first = await this.#session.stamp();
    let known = first;
    /** Agents that are made, and those whose new token has been seen. */
    let made = 0;
    let seen = 0;
    await this.#logged(args, this.#full(env), stage, "apply", this.#options.limits.apply, async (text) => {
      if (isAgentMade(text)) made += 1;
      // Tokens that this very run makes are known as soon as they are in the state, which is before anything can print them: those that its plan
      // has made with the first state it writes, those of new agents later. One of thousands of things is written again for each.
      if (!UUID.test(text) || (known !== first && seen >= made)) return;
      const stamp = await this.#session.stamp();
      if (stamp === known) return;
      const state = (await this.#session.state()) ?? null;
      this.#mask.add(...secretsInState(state ?? ""));
      seen = tokensIn(state).filter((token) => !before.has(token)).length;
      known = stamp;
    });
  }

  async planned(): Promise<PlanDocument> {
    return this.#document<PlanDocument>(["show", "-json", "-no-color", this.#session.planFile]);
  }

  async stateNow(): Promise<StateDocument> {
    return this.#document<StateDocument>(["show", "-json", "-no-color"]);
  }

  /** Who needs whom, as DOT. */
  async graph(): Promise<string> {
    const type = isAtLeast(this.#options.program, 1, 7) ? ["-type=plan"] : [];
    return this.#timed("graph", () => this.#read(["graph", ...type]));
  }

  #full(env: Readonly<Record<string, string>>): Record<string, string> {
    const { cliConfig, pluginCache } = this.#options;
    // Only these two commands: what others print is read (facts/terraform 1.21).
    return { ...quiet(cliConfig, pluginCache), ...(this.#options.verbose ? { TF_LOG: "JSON" } : {}), ...env };
  }

  async #document<T>(args: readonly string[]): Promise<T> {
    const text = await this.#read(args);
    try {
      return JSON.parse(text) as T;
    } catch {
      throw new ProvisionError(`${this.#options.program.name} ${args[0]} did not print the expected output.`);
    }
  }

  async #read(args: readonly string[]): Promise<string> {
    const { cliConfig, pluginCache } = this.#options;
    const ended = await this.#run({ args, env: quiet(cliConfig, pluginCache), limit: this.#options.limits.step });
    if (ended.code !== 0) this.#fail(args[0] ?? "", ended, [this.#mask.hide(ended.errors.trim())]);
    return ended.output;
  }

  async #logged(
    args: readonly string[],
    env: Readonly<Record<string, string>>,
    stage: string,
    step: string,
    limit = this.#options.limits.step,
    before?: TakeLine,
  ): Promise<void> {
    const progress = new Progress(this.#report, this.#mask, () => this.#options.clock.now());
    const line = (text: string): void | Promise<void> => {
      const known = before?.(text);
      return known ? known.then(() => progress.line(text, stage, step)) : progress.line(text, stage, step);
    };
    const ended = await this.#run({ args, env, limit, line });
    // One that did not begin at all says why in a line of its own.
    const last = progress.crash ?? this.#mask.hide(ended.errors.trim().split("\n").at(-1) ?? "");
    const reasons = progress.reasons.length > 0 ? progress.reasons : [last];
    if (ended.code !== 0)
      this.#fail(args[0] ?? "", ended, progress.wasInterrupted ? [INTERRUPTED, ...reasons] : reasons);
  }

  async #run(part: Pick<CommandOptions, "args" | "env" | "limit"> & { line?: TakeLine }): Promise<Ended> {
    this.#signal.throwIfAborted();
    const { program, clock, env, limits, givesWay } = this.#options;
    const { folder, work } = this.#session;
    return runCommand({
      ...part,
      program: program.path,
      folder,
      cwd: work,
      clock,
      signal: this.#signal,
      grace: limits.grace,
      givesWay,
      env: { ...env, ...part.env },
    });
  }

  #fail(command: string, { code, killedBy, tooLong, tooMuch }: Ended, reasons: readonly string[]): never {
    this.#signal.throwIfAborted();
    const { name } = this.#options.program;
    const minutes = Math.round((command === "apply" ? this.#options.limits.apply : this.#options.limits.step) / 60_000);
    if (tooLong) throw new ProvisionError(`${name} ${command} took longer than ${minutes} minutes and was stopped.`);
    if (tooMuch)
      throw new ProvisionError(`${name} ${command} printed more than ${OUTPUT_LIMIT} bytes and was stopped.`);
    // Whatever it has said by then is not why it ended.
    if (killedBy) throw new ProvisionError(killedWords(`${name} ${command}`, killedBy));
    const said = reasons.filter((one) => one !== "");
    const [first = `it exited with ${code}.`] = said;
    const more = said.length > 1 ? ` (and ${said.length - 1} more, see the log)` : "";
    throw new ProvisionError(`${name} ${command}: ${first.slice(0, 2000)}${more}`);
  }

  async #timed<T>(step: string, work: () => Promise<T>): Promise<T> {
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
