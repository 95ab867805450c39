// Imports a template with a template.yaml: reads and checks the upload, and writes the result to the job's log (rules TP-5 to TP-12,
// TP-15).
import type { Manifest } from "#schema/templates/manifest.ts";
import { ArchiveError } from "#src/provisioners/archive-entry.ts";
import { resolveProvisioner } from "#src/provisioners/effective.ts";
import { formatProblem, parseManifest } from "#src/provisioners/manifest.ts";
import { resolveVariables } from "#src/provisioners/parameters.ts";
import { readTemplateSource, type TemplateSource } from "#src/provisioners/template-source.ts";
import type { ImportResult } from "./state.ts";

type Log = { log(level: "info" | "error", stage: string, output: string): void };

/** `manifest`: set if only values of its variables are missing, so that callers can list them. */
export type ImportFailure = { readonly error: string; readonly error_code: string; readonly manifest?: string };

const READ = "Reading the upload";
const CHECK = "Checking the template";

/** Writes the reasons to the log. Returns the failure with the first one. */
export const failImport = (log: Log, stage: string, reasons: readonly string[], error_code = ""): ImportFailure => {
  for (const reason of reasons) log.log("error", stage, reason);
  const [first = "The import failed."] = reasons;
  return { error: reasons.length > 1 ? `${first} (and ${reasons.length - 1} more, see the log)` : first, error_code };
};

/** Imports the upload at `path`. Returns a failure for invalid content. */
export const importTemplate = async (
  path: string,
  mimetype: string,
  variableValues: Readonly<Record<string, string>>,
  log: Log,
): Promise<ImportResult | ImportFailure> => {
  let source: TemplateSource;
  try {
    source = await readTemplateSource(path, mimetype);
  } catch (error) {
    if (!(error instanceof ArchiveError)) throw error;
    return failImport(log, READ, [error.message]);
  }
  log.log("info", READ, `Found ${source.file}.`);
  const { manifest, problems } = parseManifest(source.manifest);
  if (!manifest) {
    const reasons = problems.map((problem) => formatProblem(source.file, problem));
    return failImport(log, CHECK, reasons);
  }
  const { invalid, missing } = resolveVariables(manifest.variables ?? [], variableValues);
  if (invalid.length > 0) {
    const reasons = invalid.map(({ field, detail }) => `variable ${field}: ${detail}`);
    return failImport(log, CHECK, reasons);
  }
  if (missing.length > 0) {
    const reasons = missing.map((name) => `variable ${name}: a value is required`);
    const failure = failImport(log, CHECK, reasons, "REQUIRED_TEMPLATE_VARIABLES");
    return { ...failure, manifest: JSON.stringify(manifest) };
  }
  log.log("info", CHECK, formatSummary(manifest));
  return { manifest: JSON.stringify(manifest), readme: source.readme };
};

const formatSummary = (manifest: Manifest): string => {
  const agentCount = manifest.resources.flatMap((resource) => resource.agents ?? []).length;
  const formatCount = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;
  return [
    `The template is valid: provisioner ${resolveProvisioner(manifest)}${manifest.external ? " of a worker" : ""}`,
    formatCount(manifest.resources.length, "resource"),
    formatCount(agentCount, "agent"),
    `${formatCount(manifest.parameters?.length ?? 0, "parameter")}.`,
  ].join(", ");
};
