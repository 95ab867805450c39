// The parameters that apply to given values: read from the manifest, or, when Terraform parameters depend on each other, determined by a
// plan (facts/terraform section 4; rules DY-1 to DY-7, TF-15).
import { AppError } from "#base/errors.ts";
import { openDefaults, openVariables } from "#db/templates/variables.ts";
import type { TemplateVersionRow } from "#db/templates/versions.ts";
import type { Manifest, ManifestParameter } from "#schema/templates/manifest.ts";
import type { Diagnostic, DynamicParameters } from "#schema/workspaces/dynamic-parameters.ts";
import { evaluate } from "#src/provisioners/dynamic.ts";
import { PlanBrokenError, ProvisionError } from "#src/provisioners/provisioner.ts";
import type { FormAnswer, FormVersion } from "#src/provisioners/terraform/forms.ts";
import { toLabel } from "#src/provisioners/terraform/mapping/address.ts";
import { TerraformProvisioner } from "#src/provisioners/terraform/terraform.ts";
import { loadFiles, loadOwner } from "../builds/terraform-work.ts";
import type { DomainContext } from "../context.ts";

export type FormDeps = Pick<DomainContext, "store" | "encryption" | "blobs" | "provisioners" | "accessUrl">;

type Version = Pick<TemplateVersionRow, "id" | "file_id" | "organization_id" | "sealed_variable_values">;
type Inputs = Readonly<Record<string, string>>;

/** Returns whether the parameters of a manifest require a plan. */
export const isPlanned = (manifest: Manifest): boolean => manifest.terraform?.is_dynamic === true;

/** Returns the form for these values. Rejects with the signal's reason when canceled. */
export const loadForm = async (
  deps: FormDeps,
  version: Version,
  manifest: Manifest,
  { inputs, user_id }: { readonly inputs: Inputs; readonly user_id: string },
  signal: AbortSignal,
): Promise<Omit<DynamicParameters, "id">> => {
  if (!isPlanned(manifest)) return evaluate(manifest, inputs);
  let answer: Answer;
  try {
    answer = await loadAnswerWithFaulty(deps, version, manifest, inputs, user_id, signal);
  } catch (error) {
    if (signal.aborted || !(error instanceof ProvisionError)) throw error;
    const { parameters } = evaluate(manifest, pickApplicable(manifest, manifest, inputs));
    return { parameters, diagnostics: [toFault(error.message, "")] };
  }
  const requested = addFaulty(manifest, answer);
  const shown = evaluate(requested, pickApplicable(manifest, requested, inputs));
  const faultsByName = new Map(
    (requested.parameters ?? []).map((one) => [one.name, answer.faults.filter(isAbout(one))]),
  );
  const others = answer.faults.filter((one) => ![...faultsByName.values()].flat().includes(one));
  return {
    parameters: shown.parameters.map((one) => {
      const ownFaults = (faultsByName.get(one.name) ?? []).map(({ summary, detail }) => toFault(summary, detail));
      return { ...one, diagnostics: ownFaults.length > 0 ? ownFaults : one.diagnostics };
    }),
    diagnostics: [...shown.diagnostics, ...others.map(({ summary, detail }) => toFault(summary, detail))],
  };
};

/**
 * Returns the manifest with the parameters and tags that apply to these values, for a build with them. Rejects with 400 and one entry per
 * invalid value.
 */
export const resolveManifest = async (
  deps: FormDeps,
  version: Version,
  manifest: Manifest,
  inputs: Inputs,
  user_id: string,
): Promise<Manifest> => {
  if (!isPlanned(manifest)) return manifest;
  const { signal } = new AbortController();
  const answer = await loadAnswerWithFaulty(deps, version, manifest, inputs, user_id, signal).catch((error) => {
    if (error instanceof PlanBrokenError) throw new AppError("overloaded", error.message);
    throw error instanceof ProvisionError ? new AppError("invalid", error.message) : error;
  });
  if (answer.faults.length === 0) {
    const terraform = manifest.terraform && { ...manifest.terraform, workspace_tags: answer.tags };
    return { ...manifest, parameters: [...answer.parameters], ...(terraform ? { terraform } : {}) };
  }
  const { parameters = [] } = addFaulty(manifest, answer);
  throw new AppError("invalid", "Parameter values are invalid.", {
    validations: answer.faults.map((one) => {
      const name = parameters.find((parameter) => isAbout(parameter)(one))?.name;
      return {
        field: name ?? answer.names.get(toLabel(one.address)) ?? (one.address || "rich_parameter_values"),
        detail: `${one.summary} ${one.detail}`.trim().slice(0, 1000),
      };
    }),
  });
};

/**
 * Keeps values of parameters that apply, and values with unknown names, which are reported. A value of a parameter that applies only to
 * other values, or that only the previous build had, is dropped silently: a client that sends back all values with one change cannot know
 * which parameters no longer apply.
 */
export const pickApplicable = (
  manifest: Manifest,
  requested: Manifest,
  inputs: Inputs,
  previous: Inputs = {},
): Record<string, string> => {
  const applicableNames = new Set((requested.parameters ?? []).map(({ name }) => name));
  const knownNames = new Set([...(manifest.terraform?.names ?? []), ...Object.keys(previous)]);
  return Object.fromEntries(
    Object.entries(inputs).filter(([name]) => applicableNames.has(name) || !knownNames.has(name)),
  );
};

/** A plan's answer. `faulty` has the definitions of the parameters that the plan omitted because their values were rejected. */
type Answer = FormAnswer & { readonly faulty: readonly ManifestParameter[] };

/** A diagnostic without an index is about the first parameter whose indexed address matches. */
const isAbout =
  ({ address = "" }: ManifestParameter) =>
  (one: { readonly address: string }): boolean =>
    one.address !== "" && (one.address === address || one.address === toLabel(address));

/**
 * A plan omits invalid parameters. Their definitions come from the import, or, if they did not apply there, from a plan without the
 * rejected values.
 */
const loadAnswerWithFaulty = async (...requested: Parameters<typeof loadAnswer>): Promise<Answer> => {
  const [deps, version, manifest, inputs, user_id, signal] = requested;
  const answer = await loadAnswer(...requested);
  const parameterFaults = answer.faults.filter(({ address }) => address.includes(PARAMETER));
  const isOfManifest = (one: { readonly address: string }): boolean =>
    (manifest.parameters ?? []).some((parameter) => isAbout(parameter)(one));
  if (parameterFaults.every(isOfManifest)) return { ...answer, faulty: manifest.parameters ?? [] };
  const validNames = new Set(answer.parameters.map(({ name }) => name));
  const validInputs = Object.fromEntries(Object.entries(inputs).filter(([name]) => validNames.has(name)));
  const { parameters } = await loadAnswer(deps, version, manifest, validInputs, user_id, signal);
  const names = new Set(parameters.map(({ name }) => name));
  return { ...answer, faulty: [...parameters, ...(manifest.parameters ?? []).filter(({ name }) => !names.has(name))] };
};

const PARAMETER = "data.coder_parameter.";

/** Returns the parameters that apply, with those omitted by the plan inserted in their places. */
const addFaulty = (manifest: Manifest, { parameters, faulty, faults }: Answer): Manifest => {
  const presentNames = new Set(parameters.map(({ name }) => name));
  const added = faulty.filter((one) => !presentNames.has(one.name) && faults.some(isAbout(one)));
  if (added.length === 0) return { ...manifest, parameters: [...parameters] };
  const order = faulty.map(({ name }) => name);
  const toPosition = ({ name }: ManifestParameter): number =>
    order.includes(name) ? order.indexOf(name) : order.length;
  return { ...manifest, parameters: [...parameters, ...added].sort((a, b) => toPosition(a) - toPosition(b)) };
};

const toFault = (summary: string, detail: string): Diagnostic => ({
  severity: "error",
  summary,
  detail,
  extra: { code: "" },
});

const loadAnswer = async (
  deps: FormDeps,
  version: Version,
  manifest: Manifest,
  inputs: Inputs,
  user_id: string,
  signal: AbortSignal,
): Promise<FormAnswer> => {
  const provisioner = deps.provisioners.get("terraform");
  if (!(provisioner instanceof TerraformProvisioner)) {
    throw new ProvisionError("This server does not support Terraform templates.");
  }
  const owner = await loadOwner(deps, user_id, version.organization_id);
  const requested = { version: await formVersion(deps, version, manifest), owner, inputs };
  return provisioner.forms.answer({ ...requested, access_url: deps.accessUrl.href }, signal);
};

const formVersion = async (deps: FormDeps, version: Version, manifest: Manifest): Promise<FormVersion> => {
  const variables = openVariables(deps.encryption, version);
  const declared = manifest.variables ?? [];
  return {
    id: version.id,
    ...(await loadFiles(deps, version, manifest)),
    targets: manifest.terraform?.targets ?? [],
    declared: declared.map(({ name, type, declared_type }) => ({ name, type: declared_type ?? type ?? "" })),
    variables,
    secrets: openDefaults(deps.encryption, version.id, declared)
      .filter(({ sensitive }) => sensitive)
      .flatMap(({ name, default: given }) => [variables[name] ?? "", String(given ?? "")]),
  };
};
