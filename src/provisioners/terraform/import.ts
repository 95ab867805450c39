// Imports a Terraform template: plans both transitions without a workspace and maps them to a manifest (facts/terraform 1.2, 3). Runs code
// of the template (data "external"), so only users who may manage templates can call it.
import type { Manifest, ManifestParameter } from "#schema/templates/manifest.ts";
import { tryCompilePattern } from "../pattern.ts";
import { ProvisionError, type Report } from "../provisioner.ts";
import { listUsedSecrets, type PackedCache, packCache } from "./cache.ts";
import type { Engine } from "./engine.ts";
import { toVariablesWithoutWorkspace } from "./environment.ts";
import { initScript } from "./init-script.ts";
import { listCronWarnings, toParameter, toPreset, toResources, toVariable } from "./manifest.ts";
import type { PlanDocument } from "./mapping/document.ts";
import { type MappedPlan, mapPlan } from "./mapping/map.ts";
import { MappingError } from "./mapping/mapped.ts";
import { isDynamic, listFormTargets, listParameterNames } from "./parameter-dependencies.ts";
import type { Program } from "./program.ts";
import type { Session } from "./session.ts";
import { SNAPSHOT_FOLDER } from "./snapshot-output.ts";
import type { TerraformSource } from "./source.ts";
import { formatVariablesFile } from "./variables.ts";
import type { TemplateArchive } from "./work.ts";

const STAGES = {
  init: "Initializing Terraform Directory",
  start: "Detecting persistent resources",
  stop: "Detecting ephemeral resources",
  module: "Checking the module for snapshots",
} as const;

/** The input of an import. Contains values of variables: never logged. */
export type ImportRequest = {
  readonly job_id: string;
  readonly archive: TemplateArchive;
  readonly variables: Readonly<Record<string, string>>;
  readonly access_url: string;
  /** IDs of the accounts that can be linked on this server. */
  readonly accounts: readonly string[];
};

type ImportInput = Omit<ImportRequest, "job_id" | "archive"> & {
  /** The engine for the snapshot module, in its own folder. */
  readonly moduleEngine: Engine | undefined;
  readonly program: Program;
  readonly session: Session;
  readonly engine: Engine;
  readonly source: TerraformSource;
  readonly report: Report;
};

export type TerraformImport = { readonly manifest: Manifest; readonly cache: PackedCache | undefined };

/** Maximum characters of a manifest. */
const MAX_MANIFEST_CHARS = 4 * 1024 * 1024;

/** Imports the template. Throws ProvisionError for problems that the template's author has to fix. */
export const importPlan = async (input: ImportInput): Promise<TerraformImport> => {
  const { engine, moduleEngine, session, source, report } = input;
  if (source.snapshot_module?.problem !== undefined) throw new ProvisionError(source.snapshot_module.problem);
  await session.writeVariables(formatVariablesFile(source.variables, input.variables));
  await engine.init(STAGES.init);
  const cache = await packCache(session);
  for (const name of cache?.leftOut ?? [])
    report.log("warn", STAGES.init, `The module ${name} is too large to be stored and is fetched at each build.`);
  const start = await planTransition(input, "start");
  const stop = await planTransition(input, "stop");
  for (const warning of [...start.mapped.warnings, ...listCronWarnings(start.mapped.resources)])
    report.log("warn", STAGES.start, warning);
  checkAccounts(start.mapped, input.accounts);
  if (moduleEngine) await checkModule(moduleEngine);
  const manifest = await loadManifest(input, start, stop.mapped);
  if (JSON.stringify(manifest).length > MAX_MANIFEST_CHARS)
    throw new ProvisionError(`What the template describes has more than ${MAX_MANIFEST_CHARS} characters.`);
  return { manifest, cache };
};

/** Rejects a module that Terraform cannot parse, because its snapshots would fail later. */
const checkModule = async (engine: Engine): Promise<void> => {
  await engine.init(STAGES.module);
  await engine.validate().catch((error) => {
    if (!(error instanceof ProvisionError)) throw error;
    throw new ProvisionError(`The module in ${SNAPSHOT_FOLDER} is not valid. ${error.message}`);
  });
};

type PlannedTransition = { readonly plan: PlanDocument; readonly mapped: MappedPlan };

const planTransition = async (
  { engine, access_url }: ImportInput,
  transition: "start" | "stop",
): Promise<PlannedTransition> => {
  await engine.plan(STAGES[transition], toVariablesWithoutWorkspace(transition, { access_url, initScript }));
  const plan = await engine.readPlan();
  const graph = await engine.loadGraph();
  return { plan, mapped: withProvisionErrors(() => mapPlan(plan, graph)) };
};

/** Converts a MappingError to a ProvisionError, so that the job shows its message. */
export const withProvisionErrors = <T>(map: () => T): T => {
  try {
    return map();
  } catch (error) {
    throw error instanceof MappingError ? new ProvisionError(error.message) : error;
  }
};

const checkAccounts = ({ external_auth }: MappedPlan, knownIds: readonly string[]): void => {
  const unknownProvider = external_auth.find(({ id }) => !knownIds.includes(id));
  if (unknownProvider)
    throw new ProvisionError(`The external auth provider "${unknownProvider.id}" is not configured on this server.`);
};

/** Returns true if only a plan can validate the parameter's value, because its pattern needs Go's engine. */
const needsGoPattern = ({ validation }: ManifestParameter): boolean =>
  validation?.regex !== undefined && tryCompilePattern(validation.regex) === undefined;

const loadManifest = async (
  { program, source, session }: ImportInput,
  { plan, mapped: start }: PlannedTransition,
  stop: MappedPlan,
): Promise<Manifest> => {
  const module = plan.configuration?.root_module;
  const parameters = start.parameters.map(toParameter);
  return {
    provisioner: "terraform",
    parameters,
    variables: source.variables.map((variable) => toVariable(variable, module?.variables)),
    presets: start.presets.map(toPreset),
    external_auth: [...start.external_auth],
    ai_task: start.has_ai_task,
    resources: toResources(start.resources),
    stop_resources: toResources(stop.resources),
    terraform: {
      program: program.name,
      version: program.version,
      is_dynamic: isDynamic(module) || parameters.some(needsGoPattern),
      has_external_agent: start.has_external_agent,
      has_snapshot_module: source.snapshot_module !== undefined,
      needs: await listUsedSecrets(session),
      names: [...listParameterNames(module).values()],
      targets: listFormTargets(module),
      workspace_tags: start.tags,
    },
  };
};
