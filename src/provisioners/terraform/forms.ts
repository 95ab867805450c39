// Evaluates a template's parameters for the values that a user has entered in a form. Plans only the form's data sources, in a folder that
// is prepared once per template version (facts/terraform section 4). A plan with errors still returns the valid parameters.

import { exists, mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseJson } from "#base/json/read.ts";
import { Mask } from "#base/secrets/mask.ts";
import type { ManifestParameter } from "#schema/templates/manifest.ts";
import { PlanBrokenError, ProvisionError } from "../provisioner.ts";
import { describeKill, runCommand } from "./command.ts";
import { Engine, type EngineOptions } from "./engine.ts";
import { toCommonVariables, toParameterVariables, toVariablesWithoutWorkspace } from "./environment.ts";
import { initScript } from "./init-script.ts";
import { toParameter } from "./manifest.ts";
import { listPlanInstances, type PlanDocument } from "./mapping/document.ts";
import { toParameters, toTags } from "./mapping/questions.ts";
import { listParameterNames } from "./parameter-dependencies.ts";
import { type Diagnostic, Progress } from "./progress.ts";
import { Session } from "./session.ts";
import { TERRAFORM_LIMITS } from "./state-json.ts";
import { formatVariablesFile } from "./variables.ts";
import type { TemplateArchive, TerraformOwner } from "./work.ts";

export type FormVersion = {
  readonly id: string;
  readonly archive: TemplateArchive;
  readonly cache: TemplateArchive | undefined;
  readonly targets: readonly string[];
  /** Declared variables with their types, and their values. */
  readonly declared: readonly { readonly name: string; readonly type: string }[];
  readonly variables: Readonly<Record<string, string>>;
  readonly secrets: readonly string[];
};

export type FormQuestion = {
  readonly version: FormVersion;
  readonly owner: TerraformOwner;
  readonly access_url: string;
  readonly inputs: Readonly<Record<string, string>>;
};

export type FormAnswer = {
  /** The valid parameters, in order. */
  readonly parameters: readonly ManifestParameter[];
  readonly tags: Readonly<Record<string, string>>;
  /** Errors of the plan, with the address of the parameter if known. `parameters` omits a parameter with an error. */
  readonly faults: readonly Diagnostic[];
  /** Names of parameters that are constants, by address without indexes. */
  readonly names: ReadonlyMap<string, string>;
};

/** Milliseconds that an interrupted command may take to end before it is killed. */
const GRACE_MS = 1_000;
/** Timeout for installing a version's providers and modules, during which other requests for the version wait. */
const PREPARE_TIMEOUT_MS = 60_000;
const TOO_LATE_MESSAGE = "The template's providers could not be installed in time.";
/** Maximum number of parallel plans, prepared versions and cached answers. */
const MAX_CONCURRENT = 2;
const MAX_VERSIONS = 8;
const MAX_ANSWERS = 128;
const READY_FILE = "ready";

/**
 * Terraform and its providers are Go programs. A program that runs for a fraction of a second does not need garbage collection, which takes
 * a sixth of its CPU time. Go still collects garbage above the memory limit.
 */
const GO_ENV_WITHOUT_GC = { GOGC: "off", GOMEMLIMIT: "512MiB" };

export class Forms {
  readonly #root: string;
  readonly #options: () => Promise<EngineOptions>;
  /** Timeout of one command in milliseconds. */
  readonly #limit_ms: number;
  /** Prepared folders by version, the most recently used last. */
  readonly #prepared = new Map<string, Promise<Session>>();
  readonly #answers = new Map<string, FormAnswer>();
  /** Number of plans in progress by version. */
  readonly #planCounts = new Map<string, number>();
  /** Folders of versions that are being removed. */
  readonly #removals = new Map<string, Promise<void>>();
  readonly #slotWaiters: (() => void)[] = [];
  #runningCount = 0;
  #runNumber = 0;

  constructor(root: string, limit_ms: number, options: () => Promise<EngineOptions>) {
    this.#root = root;
    this.#limit_ms = limit_ms;
    this.#options = options;
  }

  /**
   * Evaluates the parameters. Rejects with the signal's reason if the caller no longer needs the answer, and with ProvisionError if the
   * parameters cannot be evaluated.
   */
  async answer(question: FormQuestion, signal: AbortSignal): Promise<FormAnswer> {
    const { version, owner, inputs } = question;
    const key = JSON.stringify([version.id, owner, Object.entries(inputs).sort()]);
    const cached = this.#answers.get(key);
    if (cached) return cached;
    await this.#waitForSlot(signal);
    try {
      const session = await this.#openSession(version);
      const answer = await this.#planForm(session, question, signal);
      if (this.#answers.size >= MAX_ANSWERS) this.#answers.delete(this.#answers.keys().next().value ?? "");
      this.#answers.set(key, answer);
      return answer;
    } finally {
      this.#runningCount -= 1;
      this.#slotWaiters.shift()?.();
    }
  }

  async #waitForSlot(signal: AbortSignal): Promise<void> {
    while (this.#runningCount >= MAX_CONCURRENT) await new Promise<void>((resolve) => this.#slotWaiters.push(resolve));
    this.#runningCount += 1;
    try {
      signal.throwIfAborted();
    } catch (error) {
      this.#runningCount -= 1;
      this.#slotWaiters.shift()?.();
      throw error;
    }
  }

  async #openSession(version: FormVersion): Promise<Session> {
    const prepared = this.#prepared.get(version.id) ?? this.#prepare(version);
    this.#prepared.delete(version.id);
    this.#prepared.set(version.id, prepared);
    prepared.catch(() => this.#prepared.delete(version.id));
    for (const [id] of this.#prepared) {
      if (this.#prepared.size <= MAX_VERSIONS) break;
      if ((this.#planCounts.get(id) ?? 0) > 0 || id === version.id) continue;
      this.#prepared.delete(id);
      const removal = rm(join(this.#root, id), { recursive: true, force: true });
      this.#removals.set(id, removal);
      void removal.finally(() => this.#removals.delete(id));
    }
    return prepared;
  }

  /** Unpacks the template and installs its providers. Reuses a folder that an earlier server has prepared. */
  async #prepare({ id, archive, cache, declared, variables }: FormVersion): Promise<Session> {
    const session = new Session(join(this.#root, id));
    const values = formatVariablesFile(declared, variables);
    await this.#removals.get(id);
    if (!(await exists(join(session.folder, READY_FILE)))) {
      await session.prepare(archive, cache);
      const options = await this.#options();
      const timeout = new AbortController();
      const timer = options.clock.after(PREPARE_TIMEOUT_MS, () => timeout.abort(new ProvisionError(TOO_LATE_MESSAGE)));
      try {
        await new Engine(options, { session, signal: timeout.signal, mask: new Mask(), report: SILENT }).init("");
      } finally {
        timer.cancel();
      }
      await writeFile(join(session.folder, READY_FILE), "");
    }
    await session.writeVariables(values);
    return session;
  }

  async #planForm(session: Session, question: FormQuestion, signal: AbortSignal): Promise<FormAnswer> {
    const { id } = question.version;
    const options = await this.#options();
    this.#runNumber += 1;
    const folder = join(session.folder, `run-${this.#runNumber}`);
    this.#planCounts.set(id, (this.#planCounts.get(id) ?? 0) + 1);
    try {
      // An earlier server that was killed may have left a folder of the same name.
      await rm(folder, { recursive: true, force: true });
      await mkdir(folder, { mode: 0o700 });
      return await this.#planInFolder(folder, session, question, options, signal);
    } finally {
      this.#planCounts.set(id, (this.#planCounts.get(id) ?? 1) - 1);
      await rm(folder, { recursive: true, force: true });
    }
  }

  async #planInFolder(
    folder: string,
    session: Session,
    { version, owner, access_url, inputs }: FormQuestion,
    { clock, program, cliConfig, pluginCache, env, isLowPriority }: EngineOptions,
    signal: AbortSignal,
  ): Promise<FormAnswer> {
    const planFile = join(folder, "plan");
    const common = {
      program: program.path,
      folder,
      cwd: session.work,
      clock,
      signal,
      limit: this.#limit_ms,
      limitsCpuTime: true,
      grace: GRACE_MS,
      isLowPriority,
    };
    const baseEnv = { ...env, ...toCommonVariables(cliConfig, pluginCache), ...GO_ENV_WITHOUT_GC };
    const requestEnv = {
      ...toVariablesWithoutWorkspace("start", { access_url, initScript, owner }),
      ...toParameterVariables(inputs),
    };
    const mask = new Mask();
    mask.add(...version.secrets);
    const progress = new Progress(SILENT, mask, () => clock.now());
    const args = ["plan", "-refresh=false", "-lock=false", "-input=false", "-no-color", "-json", `-out=${planFile}`];
    const targets = version.targets.map((address) => `-target=${address}`);
    const planResult = await runCommand({
      ...common,
      args: [...args, `-var-file=${session.variablesFile}`, ...targets],
      env: { ...baseEnv, ...requestEnv },
      line: (text) => progress.line(text, "", "plan"),
    });
    signal.throwIfAborted();
    if (planResult.exceededLimit)
      throw new PlanBrokenError(
        `Evaluating the template's parameters took longer than terraform_form_limit (${this.#limit_ms / 1000} s). Try again, or ask an administrator to raise it.`,
      );
    if (planResult.killedBy) throw new PlanBrokenError(describeKill(`${program.name} plan`, planResult.killedBy));
    if (!(await exists(planFile)))
      throw new ProvisionError(progress.reasons[0] ?? "The template's parameters cannot be evaluated.");
    const showResult = await runCommand({ ...common, args: ["show", "-json", "-no-color", planFile], env: baseEnv });
    signal.throwIfAborted();
    if (showResult.killedBy) throw new PlanBrokenError(describeKill(`${program.name} show`, showResult.killedBy));
    if (showResult.code !== 0) throw new ProvisionError("The evaluated parameters of the template cannot be read.");
    return toAnswer(readPlan(showResult.output), progress.errors, mask);
  }
}

const toAnswer = (plan: PlanDocument, errors: readonly Diagnostic[], mask: Mask): FormAnswer => {
  const instances = listPlanInstances(plan);
  return {
    parameters: toParameters(instances).map(toParameter),
    tags: toTags(instances),
    faults: errors.map((error) => ({ ...error, summary: mask.hide(error.summary), detail: mask.hide(error.detail) })),
    names: listParameterNames(plan.configuration?.root_module),
  };
};

const SILENT = { log: (): void => {}, timing: (): void => {} };

const readPlan = (output: string): PlanDocument => {
  try {
    return parseJson(output, TERRAFORM_LIMITS) as PlanDocument;
  } catch (error) {
    throw new ProvisionError(`The plan of the template's parameters ${(error as Error).message}`);
  }
};
