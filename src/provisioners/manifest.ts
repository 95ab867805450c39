// Parses template.yaml to a Manifest that is safe to build from. Reports problems to template authors with line, path and reason (rules
// TP-8 to TP-12). Used by the import of template versions.

import type { TSchema } from "@sinclair/typebox";
import { FormatRegistry } from "@sinclair/typebox";
import { Value, type ValueError, ValueErrorType } from "@sinclair/typebox/value";
import { isUuid } from "#base/ids.ts";
import { Manifest } from "#schema/templates/manifest.ts";
import { assignToWorker } from "./effective.ts";
import type { Finding } from "./finding.ts";
import { checkManifest } from "./manifest-checks.ts";
import { parseYaml, YamlError } from "./yaml.ts";
import { mapYamlLines } from "./yaml-lines.ts";

/** A problem of a template file. `path`: parts joined by dots (`resources.0.name`), empty for the whole file. `line` starts at 1. */
export type Problem = { readonly line: number; readonly path: string; readonly reason: string };

export type ParsedManifest =
  | { readonly manifest: Manifest; readonly problems: readonly [] }
  | { readonly manifest: undefined; readonly problems: readonly Problem[] };

const MAX_PROBLEMS = 20;

if (!FormatRegistry.Has("uuid")) FormatRegistry.Set("uuid", isUuid);

/** Parses and checks a manifest. Never throws, even if the text is invalid. */
export const parseManifest = (text: string): ParsedManifest => {
  let value: unknown;
  try {
    value = parseYaml(text);
  } catch (error) {
    if (!(error instanceof YamlError)) throw error;
    return toFailed([{ line: error.line, path: "", reason: error.message }]);
  }
  const lines = mapYamlLines(text);
  const findings: Finding[] = lines.duplicates.map(({ pointer }) => ({ pointer, reason: "is given twice" }));
  const duplicateLines = new Map(lines.duplicates.map(({ pointer, line }) => [pointer, line]));
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    findings.push({ pointer: "", reason: "must be a mapping with the key `provisioner` and the list `resources`" });
  } else if (Value.Check(Manifest, value)) {
    findings.push(...checkManifest(value));
    if (findings.length === 0) return { manifest: assignToWorker(value), problems: [] };
  } else {
    findings.push(...listSchemaFindings(value));
  }
  const problems = findings.slice(0, MAX_PROBLEMS).map(({ pointer, reason }) => ({
    line: (reason === "is given twice" ? duplicateLines.get(pointer) : undefined) ?? lines.lineOf(pointer),
    path: pointer.slice(1).replaceAll("/", ".").replaceAll("~1", "/").replaceAll("~0", "~"),
    reason,
  }));
  return toFailed(problems.sort((a, b) => a.line - b.line));
};

/** Returns `template.yaml line 7: resources.0.name: must be ...`, or `template.yaml line 7 is not ...` for a problem of the whole file. */
export const formatProblem = (file: string, { line, path, reason }: Problem): string =>
  path === "" ? `${file} line ${line} ${reason}` : `${file} line ${line}: ${path}: ${reason}`;

const toFailed = (problems: readonly Problem[]): ParsedManifest => ({ manifest: undefined, problems });

const listSchemaFindings = (value: object): Finding[] => {
  const findings = new Map<string, string>();
  for (const error of Value.Errors(Manifest, value)) {
    if (findings.size >= MAX_PROBLEMS) break;
    if (!findings.has(error.path)) findings.set(error.path, describe(error));
  }
  return [...findings].map(([pointer, reason]) => ({ pointer, reason }));
};

const describe = (error: ValueError): string => {
  const { schema } = error;
  switch (error.type) {
    case ValueErrorType.ObjectAdditionalProperties:
      return "is not a known key here";
    case ValueErrorType.ObjectRequiredProperty:
      return "is missing";
    case ValueErrorType.StringPattern:
      return `must match ${schema.pattern}`;
    case ValueErrorType.StringFormat:
      return "must be a UUID";
    case ValueErrorType.StringMaxLength:
      return `must be at most ${schema.maxLength} characters long`;
    case ValueErrorType.StringMinLength:
      return "must not be empty";
    case ValueErrorType.ArrayMaxItems:
      return `must have at most ${schema.maxItems} entries`;
    case ValueErrorType.ArrayMinItems:
      return "must have at least one entry";
    default:
      return `must be ${describeExpected(schema)}`;
  }
};

/** Describes the values that a schema accepts. */
const describeExpected = (schema: TSchema): string => {
  if (Array.isArray(schema.anyOf)) {
    const members = schema.anyOf as TSchema[];
    const hasOnlyConstants = members.every((member) => "const" in member);
    return hasOnlyConstants
      ? `one of ${members.map((member) => member.const).join(", ")}`
      : members.map(describeExpected).join(" or ");
  }
  const typeNames: Record<string, string> = {
    string: "text",
    number: "a number",
    boolean: "true or false",
    array: "a list",
  };
  if (schema.type === "object") return "a mapping";
  if (schema.type !== "integer") return typeNames[String(schema.type)] ?? "something else";
  const { minimum, maximum } = schema;
  if (minimum !== undefined && maximum !== undefined) return `a whole number from ${minimum} to ${maximum}`;
  if (minimum !== undefined) return `a whole number of at least ${minimum}`;
  return maximum === undefined ? "a whole number" : `a whole number of at most ${maximum}`;
};
