// Runs one build: unpacks the template, reads and writes the state, plans and applies (facts/terraform 1.3 to 1.10, 1.23 to 1.26).
import { failpoint } from "#base/failpoint.ts";
import type { Mask } from "#base/secrets/mask.ts";
import {
  type BuildReport,
  ProvisionError,
  type ProvisionedResources,
  type ProvisionRequest,
  type ProvisionResult,
} from "../provisioner.ts";
import type { Engine } from "./engine.ts";
import { buildVariables } from "./environment.ts";
import { withProvisionErrors } from "./import.ts";
import { initScript } from "./init-script.ts";
import { toResources } from "./manifest.ts";
import type { PlanDocument } from "./mapping/document.ts";
import { mapPlan, mapState } from "./mapping/map.ts";
import type { Program } from "./program.ts";
import { isBare, isState, pickNewerState, type Session } from "./session.ts";
import { SNAPSHOT_NAME } from "./snapshot-output.ts";
import { parseStateSecrets } from "./state-secrets.ts";
import { parseAgentTokens } from "./state-tokens.ts";
import { formatVariablesFile } from "./variables.ts";
import type { TerraformWork } from "./work.ts";

const STAGES = {
  init: "Initializing Terraform Directory",
  plan: "Planning Infrastructure",
  graph: "Graphing Infrastructure",
  start: "Starting workspace",
  stop: "Stopping workspace",
  delete: "Destroying workspace",
} as const;

export type BuildRun = {
  readonly request: ProvisionRequest;
  readonly report: BuildReport;
  readonly signal: AbortSignal;
  readonly session: Session;
  readonly engine: Engine;
  readonly mask: Mask;
  readonly program: Program;
};

/** Runs the build. If it fails for any reason, throws a ProvisionError with the current state. */
export const build = async (run: BuildRun): Promise<ProvisionResult> => {
  const { request } = run;
  const work = request.terraform;
  if (!work) throw new ProvisionError("The template's files are not available.");
  checkReadable(request.state);
  const state = pickNewerState(request.state, await readRemainingState(run, request.state));
  try {
    if (request.transition === "delete" && isBare(state)) return { state: null };
    return await runBuild(run, work, state);
  } catch (error) {
    throw addState(error, (await readRemainingState(run, state)) ?? state);
  }
};

/** Throws ProvisionError for an unreadable state. With it, a start would create all resources again, and a delete would remove nothing. */
const checkReadable = (state: string | null): void => {
  if (state === null || state === "" || isState(state)) return;
  throw new ProvisionError(
    "The state of the previous build cannot be read, so its resources are unknown. Push a valid state, or delete the workspace with --orphan.",
  );
};

/** Returns the state in the folder. Moves an unreadable state to another file and logs its path. */
const readRemainingState = async (
  { session, report }: BuildRun,
  previousState: string | null,
): Promise<string | undefined> => {
  const keptState = await session.moveUnreadableState(previousState);
  if (keptState !== undefined) {
    const message = `What a run has left as its state cannot be read. It is kept on the machine that ran it as ${keptState}; what is not in the state of the build before has to be looked for by hand.`;
    report.log("error", STAGES.init, message);
  }
  return session.readState();
};

/** Returns an error with the same message and the remaining state. */
const addState = (error: unknown, state: string | null): ProvisionError => {
  const message = error instanceof Error ? error.message : "The build was stopped.";
  return new ProvisionError(message, error instanceof ProvisionError ? error.code : "", { state }, { cause: error });
};

const runBuild = async (run: BuildRun, work: TerraformWork, state: string | null): Promise<ProvisionResult> => {
  const { request, session, engine, mask, report, program } = run;
  const { transition } = request;
  checkProgram(program, state);
  if (state !== null && state !== request.state) {
    report.log("warn", STAGES.init, "An interrupted run left a newer state; the build continues from it.");
  }
  const secrets = listSecrets(request, work);
  mask.add(...secrets, ...(state === null ? [] : parseStateSecrets(state)));
  // `init` must find the state, because it also installs providers that only the state needs (facts/terraform 1.9).
  if (state !== null) await session.writeState(state);
  await unpackTemplate(run, work);
  failpoint("build_prepared");
  await engine.init(STAGES.init);
  const env = buildVariables(request, work, initScript, request.claimed ? findOnlyToken(state) : undefined);
  const dailyCost = await planBuild(run, env);
  await run.report.charge(dailyCost);
  await engine.apply(STAGES[transition], toApplyEnvironment(env));
  const finalState = (await readRemainingState(run, state)) ?? state;
  if (transition === "delete") return { state: null };
  const graph = await engine.loadGraph();
  const document = await engine.readState();
  const { resources } = withProvisionErrors(() => mapState(document, graph));
  return { state: finalState, made: { resources: toResources(resources), daily_cost: dailyCost, secrets } };
};

/** Returns the resources that a start would create, without creating them. */
export const runPlan = async (
  run: Pick<BuildRun, "request" | "session" | "engine" | "mask"> & { readonly work: TerraformWork },
): Promise<ProvisionedResources> => {
  const { request, work, engine, mask } = run;
  mask.add(...listSecrets(request, work));
  await unpackTemplate(run, work);
  await engine.init(STAGES.init);
  await engine.plan(STAGES.plan, buildVariables(request, work, initScript));
  const document = await engine.readPlan();
  const graph = await engine.loadGraph();
  const { resources, daily_cost } = withProvisionErrors(() => mapPlan(document, graph));
  return { resources: toResources(resources), daily_cost, secrets: [] };
};

const unpackTemplate = async (
  { request, session }: Pick<BuildRun, "request" | "session">,
  { archive, cache, variables }: TerraformWork,
): Promise<void> => {
  await session.prepare(archive, cache);
  const declared = (request.manifest.variables ?? []).map(({ name, type, declared_type }) => ({
    name,
    type: declared_type ?? type ?? "",
  }));
  await session.writeVariables(formatVariablesFile(declared, variables));
  const { manifest, snapshot_value } = request;
  if (manifest.terraform?.has_snapshot_module === true && snapshot_value !== undefined)
    await session.writeValues({ [SNAPSHOT_NAME]: JSON.parse(snapshot_value) });
};

/** Plans, and returns the daily cost. A delete is planned without values if the template rejects one (facts/terraform 1.10). */
const planBuild = async (run: BuildRun, env: Record<string, string>): Promise<number> => {
  const { engine, request, report } = run;
  const isDelete = request.transition === "delete";
  try {
    await engine.plan(STAGES.plan, env, isDelete);
  } catch (error) {
    if (!isDelete || run.signal.aborted || !(error instanceof ProvisionError)) throw error;
    report.log("warn", STAGES.plan, "The template rejects a value; the workspace is deleted without values.");
    const withoutParameters = Object.entries(env).filter(([name]) => !/^CODER_PARAMETER_[0-9a-f]{64}$/.test(name));
    await engine.plan(STAGES.plan, Object.fromEntries(withoutParameters), true);
  }
  if (isDelete) return 0;
  const document = await engine.readPlan();
  if (request.claimed) warnAboutRecreated(document, report);
  return withProvisionErrors(() => mapPlan(document, "")).daily_cost;
};

/** Warns about resources of a claimed prebuilt workspace that are recreated, because its owner waits for each (facts/terraform 1.29). */
const warnAboutRecreated = ({ resource_changes = [] }: PlanDocument, report: BuildReport): void => {
  for (const { address, change } of resource_changes) {
    if (!change.actions.includes("delete") || !change.actions.includes("create")) continue;
    const paths = (change.replace_paths ?? []).map((path) => path.join(".")).join(", ");
    const reason = paths === "" ? "" : ` because of ${paths}`;
    report.log("warn", STAGES.plan, `${address} is prebuilt and is re-created for its owner${reason}.`);
  }
};

/** Omits the variables for parameters and linked accounts, because the plan file already contains their values. */
const toApplyEnvironment = (env: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(env).filter(([name]) => !/^CODER_(?:PARAMETER|EXTERNAL_AUTH|GIT_AUTH)_/.test(name)),
  );

/** Returns the secrets of the owner and of the template's author. */
const listSecrets = ({ manifest }: ProvisionRequest, { variables, secrets }: TerraformWork): string[] => {
  const sensitive = (manifest.variables ?? [])
    .filter((variable) => variable.sensitive)
    .map(({ name }) => variables[name] ?? "");
  const owned = [secrets.session_token, secrets.ssh_private_key, ...Object.values(secrets.accounts)];
  return [...owned, ...sensitive].filter((secret) => secret !== "");
};

/**
 * Throws ProvisionError if Terraform would continue with a state of OpenTofu, because Terraform's registry does not know OpenTofu's
 * providers. The reverse works (facts/terraform 5.4).
 */
const checkProgram = ({ name }: Program, state: string | null): void => {
  if (name === "terraform" && state?.includes("registry.opentofu.org/")) {
    throw new ProvisionError(
      "This workspace was created with OpenTofu, so only OpenTofu can continue with it. This server has Terraform.",
    );
  }
};

/** Returns the token of the only agent; with several agents it would be ambiguous (facts/terraform 2.10). */
const findOnlyToken = (state: string | null): string | undefined => {
  const tokens = parseAgentTokens(state);
  return tokens.length === 1 ? tokens[0] : undefined;
};
