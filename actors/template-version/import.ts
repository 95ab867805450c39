// The steps of an import: archive -> template.yaml -> checked manifest, reported in the job's log (rules TP-5 to TP-12, TP-15).
import type { Manifest } from "#schema/templates/manifest.ts";
import { ArchiveError } from "#src/provisioners/archive-entry.ts";
import { resolveProvisioner } from "#src/provisioners/effective.ts";
import { formatProblem, parseManifest } from "#src/provisioners/manifest.ts";
import { resolveVariables } from "#src/provisioners/parameters.ts";
import { readTemplateSource, type TemplateSource } from "#src/provisioners/template-source.ts";
import type { ImportResult } from "./state.ts";

type Log = { log(level: "info" | "error", stage: string, output: string): void };

/** `manifest` is set when only values of its variables are missing, so that callers can list them. */
export type ImportFailure = { readonly error: string; readonly error_code: string; readonly manifest?: string };

const READ = "Reading the upload";
const CHECK = "Checking the template";

/** Reads and checks the upload at `path`. Invalid content never makes it throw. */
export const importTemplate = async (
  path: string,
  mimetype: string,
  variableValues: Readonly<Record<string, string>>,
  log: Log,
): Promise<ImportResult | ImportFailure> => {
  const fail = (stage: string, reasons: readonly string[], error_code = ""): ImportFailure => {
    for (const reason of reasons) log.log("error", stage, reason);
    const [first = "The import failed."] = reasons;
    const more = reasons.length > 1 ? ` (and ${reasons.length - 1} more, see the log)` : "";
    return { error: first + more, error_code };
  };
  let source: TemplateSource;
  try {
    source = await readTemplateSource(path, mimetype);
  } catch (error) {
    if (!(error instanceof ArchiveError)) throw error;
    return fail(READ, [error.message]);
  }
  log.log("info", READ, `Found ${source.file}.`);
  const { manifest, problems } = parseManifest(source.manifest);
  if (!manifest)
    return fail(
      CHECK,
      problems.map((problem) => formatProblem(source.file, problem)),
    );
  const variables = resolveVariables(manifest.variables ?? [], variableValues);
  if (variables.invalid.length > 0) {
    return fail(
      CHECK,
      variables.invalid.map(({ field, detail }) => `variable ${field}: ${detail}`),
    );
  }
  if (variables.missing.length > 0) {
    const missing = variables.missing.map((name) => `variable ${name}: a value is required`);
    return { ...fail(CHECK, missing, "REQUIRED_TEMPLATE_VARIABLES"), manifest: JSON.stringify(manifest) };
  }
  log.log("info", CHECK, formatSummary(manifest));
  return { manifest: JSON.stringify(manifest), readme: source.readme };
};

const formatSummary = (manifest: Manifest): string => {
  const agents = manifest.resources.flatMap((resource) => resource.agents ?? []).length;
  const count = (n: number, word: string): string => `${n} ${word}${n === 1 ? "" : "s"}`;
  return [
    `The template is valid: provisioner ${resolveProvisioner(manifest)}${manifest.external ? " of a worker" : ""}`,
    count(manifest.resources.length, "resource"),
    count(agents, "agent"),
    `${count(manifest.parameters?.length ?? 0, "parameter")}.`,
  ].join(", ");
};
