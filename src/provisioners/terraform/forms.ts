// Evaluates a template's parameters for given values: plans only the form's data sources, in a folder that is prepared once per version
// (facts/terraform section 4). A plan with errors still returns the valid parts.

import { exists, mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseJson } from "#base/json/read.ts";
import { Mask } from "#base/secrets/mask.ts";
import type { ManifestParameter } from "#schema/templates/manifest.ts";
import { PlanBrokenError, ProvisionError } from "../provisioner.ts";
import { describeKill, runCommand } from "./command.ts";
import { Engine, type EngineOptions } from "./engine.ts";
import { quietVariables, toParameterVariables, toPlainVariables } from "./environment.ts";
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
  /** Errors, with the address of the parameter if known: a plan omits that parameter. */
  readonly faults: readonly Diagnostic[];
  /** Names of parameters that are constants, by address without indexes. */
  readonly names: ReadonlyMap<string, string>;
};

/** Milliseconds between interrupting and killing a command. */
const GRACE_MS = 1_000;
/** Timeout for preparing a version's providers and modules, which other requests wait for. */
const PREPARE_TIMEOUT_MS = 60_000;
const TOO_LATE_MESSAGE = "The template's providers could not be installed in time.";
/** Maximum number of parallel plans, prepared versions and cached answers. */
const MAX_CONCURRENT = 2;
const MAX_VERSIONS = 8;
const MAX_ANSWERS = 128;
const READY = "ready";

/**
 * Terraform and its providers are Go programs. One that runs for a fraction of a second need not collect garbage, which takes a sixth of
 * its CPU time; above the memory limit it does so anyway.
 */
const SHORT_LIVED_GO_ENV = { GOGC: "off", GOMEMLIMIT: "512MiB" };

export class Forms {
  readonly #root: string;
  readonly #options: () => Promise<EngineOptions>;
  /** Timeout of one command in milliseconds. */
  readonly #limit_ms: number;
  /** By version, most recently used last. */
  readonly #prepared = new Map<string, Promise<Session>>();
  readonly #answers = new Map<string, FormAnswer>();
  readonly #busy = new Map<string, number>();
  /** Folders of versions that are being removed. */
  readonly #going = new Map<string, Promise<void>>();
  readonly #waiting: (() => void)[] = [];
  #running = 0;
  #runs = 0;

  constructor(root: string, limit_ms: number, options: () => Promise<EngineOptions>) {
    this.#root = root;
    this.#limit_ms = limit_ms;
    this.#options = options;
  }

  /** Rejects with the signal's reason if the question is outdated, and with ProvisionError if it cannot be answered. */
  async answer(question: FormQuestion, signal: AbortSignal): Promise<FormAnswer> {
    const { version, owner, inputs } = question;
    const key = JSON.stringify([version.id, owner, Object.entries(inputs).sort()]);
    const known = this.#answers.get(key);
    if (known) return known;
    await this.#waitForSlot(signal);
    try {
      const session = await this.#openSession(version);
      const answer = await this.#planForm(session, question, signal);
      if (this.#answers.size >= MAX_ANSWERS) this.#answers.delete(this.#answers.keys().next().value ?? "");
      this.#answers.set(key, answer);
      return answer;
    } finally {
      this.#running -= 1;
      this.#waiting.shift()?.();
    }
  }

  async #waitForSlot(signal: AbortSignal): Promise<void> {
    while (this.#running >= MAX_CONCURRENT) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#running += 1;
    try {
      signal.throwIfAborted();
    } catch (error) {
      this.#running -= 1;
      this.#waiting.shift()?.();
      throw error;
    }
  }

  async #openSession(version: FormVersion): Promise<Session> {
    const known = this.#prepared.get(version.id) ?? this.#prepare(version);
    this.#prepared.delete(version.id);
    this.#prepared.set(version.id, known);
    known.catch(() => this.#prepared.delete(version.id));
    for (const [id] of this.#prepared) {
      if (this.#prepared.size <= MAX_VERSIONS) break;
      if ((this.#busy.get(id) ?? 0) > 0 || id === version.id) continue;
      this.#prepared.delete(id);
      const removal = rm(join(this.#root, id), { recursive: true, force: true });
      this.#going.set(id, removal);
      void removal.finally(() => this.#going.delete(id));
    }
    return known;
  }

  /** Prepares the template with its providers once per version; reuses a folder prepared by an earlier server. */
  async #prepare({ id, archive, cache, declared, variables }: FormVersion): Promise<Session> {
    const session = new Session(join(this.#root, id));
    const values = formatVariablesFile(declared, variables);
    await this.#going.get(id);
    if (!(await exists(join(session.folder, READY)))) {
      await session.prepare(archive, cache);
      const options = await this.#options();
      const timeout = new AbortController();
      const limit = options.clock.after(PREPARE_TIMEOUT_MS, () => timeout.abort(new ProvisionError(TOO_LATE_MESSAGE)));
      try {
        await new Engine(options, { session, signal: timeout.signal, mask: new Mask(), report: SILENT }).init("");
      } finally {
        limit.cancel();
      }
      await writeFile(join(session.folder, READY), "");
    }
    await session.writeVariables(values);
    return session;
  }

  async #planForm(
    session: Session,
    { version, owner, access_url, inputs }: FormQuestion,
    signal: AbortSignal,
  ): Promise<FormAnswer> {
    const { clock, program, cliConfig, pluginCache, env, isLowPriority } = await this.#options();
    this.#runs += 1;
    const folder = join(session.folder, `run-${this.#runs}`);
    this.#busy.set(version.id, (this.#busy.get(version.id) ?? 0) + 1);
    try {
      // The folder of an earlier server that was killed.
      await rm(folder, { recursive: true, force: true });
      await mkdir(folder, { mode: 0o700 });
      const file = join(folder, "plan");
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
      const base = { ...env, ...quietVariables(cliConfig, pluginCache), ...SHORT_LIVED_GO_ENV };
      const requested = {
        ...toPlainVariables("start", { access_url, initScript, owner }),
        ...toParameterVariables(inputs),
      };
      const mask = new Mask();
      mask.add(...version.secrets);
      const progress = new Progress(SILENT, mask, () => clock.now());
      const args = ["plan", "-refresh=false", "-lock=false", "-input=false", "-no-color", "-json", `-out=${file}`];
      const targets = version.targets.map((address) => `-target=${address}`);
      const { tooLong, killedBy } = await runCommand({
        ...common,
        args: [...args, `-var-file=${session.variablesFile}`, ...targets],
        env: { ...base, ...requested },
        line: (text) => progress.line(text, "", "plan"),
      });
      signal.throwIfAborted();
      if (tooLong)
        throw new PlanBrokenError(
          `Evaluating the template's parameters took longer than terraform_form_limit (${this.#limit_ms / 1000} s). Try again, or ask an administrator to raise it.`,
        );
      if (killedBy) throw new PlanBrokenError(describeKill(`${program.name} plan`, killedBy));
      if (!(await exists(file)))
        throw new ProvisionError(progress.reasons[0] ?? "The template's parameters cannot be evaluated.");
      const shown = await runCommand({ ...common, args: ["show", "-json", "-no-color", file], env: base });
      signal.throwIfAborted();
      if (shown.killedBy) throw new PlanBrokenError(describeKill(`${program.name} show`, shown.killedBy));
      if (shown.code !== 0) throw new ProvisionError("The evaluated parameters of the template cannot be read.");
      const document = readPlan(shown.output);
      const instances = listPlanInstances(document);
      const faults = progress.errors.map((one) => ({
        ...one,
        summary: mask.hide(one.summary),
        detail: mask.hide(one.detail),
      }));
      const names = listParameterNames(document.configuration?.root_module);
      return { parameters: toParameters(instances).map(toParameter), tags: toTags(instances), faults, names };
    } finally {
      this.#busy.set(version.id, (this.#busy.get(version.id) ?? 1) - 1);
      await rm(folder, { recursive: true, force: true });
    }
  }
}

const SILENT = { log: (): void => {}, timing: (): void => {} };

const readPlan = (output: string): PlanDocument => {
  try {
    return parseJson(output, TERRAFORM_LIMITS) as PlanDocument;
  } catch (error) {
    throw new ProvisionError(`The plan of the template's parameters ${(error as Error).message}`);
  }
};
