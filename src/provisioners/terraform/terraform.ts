// Runs the builds of Terraform templates with the machine's tofu or terraform, in a folder per workspace. Reads the state after every run,
// even a failed one, and keeps it in the folder until the server has stored it (rules TF-6 to TF-12).
import { exists, mkdir, readdir, rm, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Clock } from "#base/clock.ts";
import { failpoint } from "#base/failpoint.ts";
import { log } from "#base/log.ts";
import { Mask } from "#base/secrets/mask.ts";
import {
  type BuildReport,
  ProvisionError,
  type ProvisionedResources,
  type Provisioner,
  type ProvisionRequest,
  type ProvisionResult,
  type Report,
  type RetainedBuild,
  type SnapshotModule,
} from "../provisioner.ts";
import { build, runPlan } from "./build.ts";
import { endRunning, interruptRunning } from "./command.ts";
import { Engine, type EngineOptions, type Limits } from "./engine.ts";
import { filterEnvironment } from "./environment.ts";
import { Forms } from "./forms.ts";
import { type ImportRequest, importPlan, type TerraformImport } from "./import.ts";
import { InitTurns } from "./init-turns.ts";
import { findProgram, type Program } from "./program.ts";
import { listStateResources, Session } from "./session.ts";
import { TerraformModule } from "./snapshot-module.ts";
import { SNAPSHOT_FOLDER } from "./snapshot-output.ts";
import type { TerraformSource } from "./source.ts";
import { RetainedBuilds } from "./unconfirmed-runs.ts";

export type TerraformOptions = {
  /** The folder in which this provisioner creates all its folders. */
  readonly root: string;
  readonly clock: Clock;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Settings; see src/base/config/terraform-settings.ts. */
  readonly binary: string | undefined;
  readonly cliConfig: string | undefined;
  readonly pass: readonly string[];
  readonly applyLimit: number;
  /** CPU time in milliseconds that planning a form may use. */
  readonly formLimit: number;
  readonly limits?: Partial<Limits>;
};

/** Parallel tests set this variable, because they would starve commands with a low priority. */
const EVEN_PRIORITY_VARIABLE = "SLIPWAY_TEST_EVEN";

/** Timeouts of a command other than apply, and of an interrupted command. */
const STEP_TIMEOUT_MS = 15 * 60_000;
const GRACE_MS = 2 * 60_000;
/** Age after which abandoned run folders and unused plugins are removed. */
const FOLDER_AGE_MS = 7 * 86_400_000;
const PLUGIN_AGE_MS = 30 * 86_400_000;

export class TerraformProvisioner implements Provisioner {
  readonly name = "terraform";
  readonly #options: TerraformOptions;
  /** Evaluates a template's parameters for given values. */
  readonly forms: Forms;
  readonly module: SnapshotModule;
  readonly #initTurns = new InitTurns();
  readonly #retained: RetainedBuilds;
  #program: Promise<Program | string> | undefined;

  constructor(options: TerraformOptions) {
    const { root, cliConfig } = options;
    // Absolute paths, because Terraform runs in other folders.
    this.#options = {
      ...options,
      root: resolve(root),
      cliConfig: cliConfig === undefined ? undefined : resolve(cliConfig),
    };
    const { clock } = options;
    this.#retained = new RetainedBuilds(this.#builds, (folder) => endRunning(folder, clock, this.#limits.grace));
    this.module = new TerraformModule(join(this.#options.root, "snapshots"), {
      waitUntilEnded: (folder) => this.#endEarlierRuns(folder),
      open: (session, report, signal) => this.#createEngine(session, report, signal),
    });
    this.forms = new Forms(join(this.#options.root, "forms"), this.#options.formLimit, () =>
      this.#buildEngineOptions(),
    );
  }

  async run(request: ProvisionRequest, report: BuildReport, signal: AbortSignal): Promise<ProvisionResult> {
    const session = this.#getSession(request.workspace.id);
    failpoint("build_claimed");
    return this.#retained.runWithFolderLocked(request.workspace.id, async () => {
      await this.#endEarlierRuns(session.folder);
      const { engine, mask } = await this.#createEngine(session, report, signal, request.verbose);
      return build({ request, report, signal, session, engine, mask, program: await this.#requireProgram() });
    });
  }

  /** Plans a start in a separate folder, and returns the resources that it would create. */
  async plan(request: ProvisionRequest, report: Report, signal: AbortSignal): Promise<ProvisionedResources> {
    const work = request.terraform;
    if (!work) throw new ProvisionError("The template's files are not available.");
    const session = new Session(join(this.#options.root, "imports", request.job_id));
    const { engine, mask } = await this.#createEngine(session, report, signal);
    try {
      return await runPlan({ request, work, session, engine, mask });
    } finally {
      await session.remove();
    }
  }

  /** Removes the workspace's folder, because the server has stored its state. */
  releaseState({ workspace }: ProvisionRequest): void {
    failpoint("build_forget");
    void this.#retained.remove(workspace.id);
  }

  listRetained(): Promise<readonly RetainedBuild[]> {
    return this.#retained.list();
  }

  dropRetained(stored: readonly RetainedBuild[]): Promise<void> {
    return this.#retained.drop(stored);
  }

  listRemaining(state: string | null): string[] {
    return listStateResources(state);
  }

  async importTemplate(
    request: ImportRequest,
    source: TerraformSource,
    report: Report,
    signal: AbortSignal,
  ): Promise<TerraformImport> {
    const session = new Session(join(this.#options.root, "imports", request.job_id));
    const program = await this.#requireProgram();
    await endRunning(session.folder, this.#options.clock, 0);
    const { engine, mask } = await this.#createEngine(session, report, signal);
    const sensitive = source.variables.filter((variable) => variable.sensitive);
    mask.add(...sensitive.flatMap(({ name, default: value }) => [request.variables[name], value]));
    try {
      await session.prepare(request.archive);
      const moduleEngine = source.snapshot_module && (await this.#createModuleEngine(session, request, report, signal));
      report.log("info", "Parsing template parameters", `${program.name} ${program.version} reads the template.`);
      return await importPlan({ ...request, source, report, program, session, engine, moduleEngine });
    } finally {
      await session.remove();
    }
  }

  /** Creates the engine for the snapshot module, unpacked next to the template. */
  async #createModuleEngine(
    { folder }: Session,
    { archive }: ImportRequest,
    report: Report,
    signal: AbortSignal,
  ): Promise<Engine> {
    const session = new Session(join(folder, "module"), SNAPSHOT_FOLDER);
    await session.prepare(archive);
    return (await this.#createEngine(session, report, signal)).engine;
  }

  async findProblem(): Promise<string | undefined> {
    const program = await this.program();
    return typeof program === "string" ? program : undefined;
  }

  /** Returns the program that runs templates, or why it cannot be used. Searches again at each call until a program is found. */
  async program(): Promise<Program | string> {
    const { binary, env } = this.#options;
    this.#program ??= findProgram({ setting: binary, env });
    const program = await this.#program;
    if (typeof program === "string") this.#program = undefined;
    return program;
  }

  /** Interrupts processes of an earlier server, and removes folders of imports and old folders. */
  async prepare(): Promise<void> {
    const { root, clock } = this.#options;
    for (const kind of ["builds", "snapshots", "imports", "forms"]) {
      for (const name of await listNames(join(root, kind))) {
        const folder = join(root, kind, name);
        if (interruptRunning(folder)) log("terraform").warn("{folder} had a program of an earlier run", { folder });
        // The folder of a build or snapshot may contain the only copy of a state.
        if (kind === "builds" || kind === "snapshots") continue;
        const isOld = clock.now() - (await stat(folder)).mtimeMs > FOLDER_AGE_MS;
        // A form's folder is reused for later questions.
        const staleFolders = kind === "imports" || isOld ? [folder] : await listFormRuns(folder);
        // Imports and form questions create no resources, so they can be killed and started again.
        if (staleFolders.length > 0) await endRunning(folder, clock, 0);
        for (const stale of staleFolders) await rm(stale, { recursive: true, force: true });
      }
    }
    await this.#removeOldPlugins();
  }

  /** The path of a plugin is `<host>/<owner>/<name>/<version>/<platform>`. */
  async #removeOldPlugins(): Promise<void> {
    const walk = async (folder: string, depth: number): Promise<void> => {
      for (const name of await listNames(folder)) {
        const path = join(folder, name);
        if (depth < 4) await walk(path, depth + 1);
        else if (this.#options.clock.now() - (await stat(path)).atimeMs > PLUGIN_AGE_MS)
          await rm(path, { recursive: true, force: true });
      }
    };
    await walk(this.#plugins, 0);
  }

  /** Interrupts Terraform processes of a server that has died, and waits for them, because they may still write the state. */
  async #endEarlierRuns(folder: string): Promise<void> {
    interruptRunning(folder);
    await endRunning(folder, this.#options.clock, this.#limits.grace);
  }

  get #builds(): string {
    return join(this.#options.root, "builds");
  }

  get #plugins(): string {
    return join(this.#options.root, "plugins");
  }

  get #limits(): Limits {
    return { step: STEP_TIMEOUT_MS, grace: GRACE_MS, apply: this.#options.applyLimit, ...this.#options.limits };
  }

  #getSession(workspace_id: string): Session {
    return new Session(join(this.#builds, workspace_id));
  }

  async #requireProgram(): Promise<Program> {
    const program = await this.program();
    if (typeof program === "string") throw new ProvisionError(`Terraform templates cannot run here. ${program}`);
    return program;
  }

  async #createEngine(
    session: Session,
    report: Report,
    signal: AbortSignal,
    verbose = false,
  ): Promise<{ engine: Engine; mask: Mask }> {
    const mask = new Mask();
    await mkdir(session.folder, { recursive: true, mode: 0o700 });
    return {
      mask,
      engine: new Engine({ ...(await this.#buildEngineOptions()), verbose }, { session, signal, mask, report }),
    };
  }

  async #buildEngineOptions(): Promise<EngineOptions> {
    const { clock, env, pass, cliConfig: configuredFile } = this.#options;
    // A configured file that does not exist adds a warning to all output (facts/terraform 2.5).
    const cliConfig = configuredFile !== undefined && (await exists(configuredFile)) ? configuredFile : undefined;
    return {
      program: await this.#requireProgram(),
      clock,
      cliConfig,
      env: filterEnvironment(env, pass),
      turns: this.#initTurns,
      pluginCache: this.#plugins,
      limits: this.#limits,
      isLowPriority: env[EVEN_PRIORITY_VARIABLE] === undefined,
    };
  }
}

const listNames = (folder: string): Promise<string[]> => readdir(folder).catch(() => []);

/** Returns the folders of form questions that an earlier server did not answer. */
const listFormRuns = async (folder: string): Promise<string[]> =>
  (await listNames(folder)).filter((name) => name.startsWith("run-")).map((name) => join(folder, name));
