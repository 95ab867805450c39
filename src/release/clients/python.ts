// Generates the Python package `slipway-client`: types and methods from the document, and the runtime in deploy/clients/python. A wheel is
// a zip with three additional files, so no Python tool is required.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type ZipOptions, zipSync } from "fflate";
import type { ReleaseInputs } from "../inputs.ts";
import { getReference, listOperations, type OpenApi, type Operation, type Parameter, type Schema } from "./document.ts";

const PACKAGE = "slipway_client";

/** Writes `python/slipway_client-<version>-py3-none-any.whl`. Returns its path. */
export const makePythonClient = (inputs: ReleaseInputs, document: OpenApi): string => {
  const source = join(inputs.root, "deploy/clients/python");
  const files = new Map<string, string>();
  for (const name of readdirSync(join(source, PACKAGE)).sort()) {
    if (/\.(py|typed)$/.test(name)) files.set(`${PACKAGE}/${name}`, readFileSync(join(source, PACKAGE, name), "utf8"));
  }
  files.set(`${PACKAGE}/schema.py`, printSchema(document));
  files.set(`${PACKAGE}/operations.py`, printOperations(document));
  const infoFolder = `${PACKAGE}-${inputs.version}.dist-info`;
  files.set(`${infoFolder}/METADATA`, formatMetadata(inputs.version, readFileSync(join(source, "README.md"), "utf8")));
  files.set(
    `${infoFolder}/WHEEL`,
    "Wheel-Version: 1.0\nGenerator: slipway\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
  );
  files.set(`${infoFolder}/licenses/LICENSE`, readFileSync(join(inputs.root, "LICENSE"), "utf8"));
  files.set(`${infoFolder}/RECORD`, formatRecord(files, `${infoFolder}/RECORD`));
  mkdirSync(join(inputs.out, "python"), { recursive: true });
  const wheel = join(inputs.out, "python", `${PACKAGE}-${inputs.version}-py3-none-any.whl`);
  // Zip files contain local times. With the date in UTC, the same input gives the same bytes in every time zone.
  const [year = 1980, month = 1, day = 1] = new Date(inputs.epoch * 1000)
    .toISOString()
    .slice(0, 10)
    .split("-")
    .map(Number);
  const options: ZipOptions = { mtime: new Date(year, month - 1, day), level: 6, os: 3, attrs: 0o644 << 16 };
  const encoder = new TextEncoder();
  const zip = zipSync(Object.fromEntries([...files].map(([name, text]) => [name, encoder.encode(text)])), options);
  writeFileSync(wheel, zip);
  return wheel;
};

const formatMetadata = (version: string, readme: string): string =>
  [
    "Metadata-Version: 2.4",
    "Name: slipway-client",
    `Version: ${version}`,
    "Summary: Client of the API of a Slipway server.",
    "License-Expression: Apache-2.0",
    "License-File: LICENSE",
    "Requires-Python: >=3.11",
    "Description-Content-Type: text/markdown",
    "",
    readme,
  ].join("\n");

/** Returns the list of all files with their digests. The entry of the list itself has no digest. */
const formatRecord = (files: ReadonlyMap<string, string>, recordPath: string): string => {
  const lines = [...files].map(([name, text]) => {
    const bytes = new TextEncoder().encode(text);
    const digest = new Bun.CryptoHasher("sha256").update(bytes).digest("base64url").replace(/=+$/, "");
    return `${name},sha256=${digest},${bytes.length}`;
  });
  return `${[...lines, `${recordPath},,`].join("\n")}\n`;
};

const printSchema = ({ components: { schemas } }: OpenApi): string => {
  const shapes = Object.entries(schemas);
  const classes = shapes.filter(([, { properties }]) => properties);
  const values = shapes.filter(([, schema]) => !schema.properties && !schema.anyOf);
  const unions = shapes.filter(([, { anyOf }]) => anyOf);
  return [
    '"""The shapes of the API, printed from the OpenAPI document."""',
    "",
    "from __future__ import annotations",
    "",
    "from typing import Any, Literal, NotRequired, TypeAlias, TypedDict",
    "",
    "",
    ...classes.map(([name, schema]) => `${printClass(name, schema)}\n\n`),
    // Aliases come after the classes: annotations may refer to later names, the values of aliases may not.
    ...[...values, ...unions].map(([name, schema]) => `${name}: TypeAlias = ${formatType(schema)}`),
    "",
  ].join("\n");
};

const printClass = (name: string, { description, properties = {}, required = [] }: Schema): string => {
  const members = Object.entries(properties).map(([member, schema]) => {
    const type = formatType(schema);
    return `    ${member}: ${required.includes(member) ? type : `NotRequired[${type}]`}`;
  });
  const lines = [...formatDocstring(description, 4), ...members];
  return [`class ${name}(TypedDict):`, ...(lines.length > 0 ? lines : ["    pass"])].join("\n");
};

const PRIMITIVE_TYPES: Readonly<Record<string, string>> = {
  string: "str",
  integer: "int",
  number: "float",
  boolean: "bool",
};

type Naming = (name: string) => string;
const keepName: Naming = (name) => name;
const qualifyName: Naming = (name) => `schema.${name}`;

const formatType = (schema: Schema, naming: Naming = keepName): string => {
  const type = formatBareType(schema, naming);
  return schema.nullable && type !== "Any" ? `${type} | None` : type;
};

const formatBareType = (schema: Schema, naming: Naming): string => {
  const inner = (one: Schema): string => formatType(one, naming);
  const name = getReference(schema);
  if (name !== undefined) return naming(name);
  if (schema.enum) return `Literal[${schema.enum.map(formatValue).join(", ")}]`;
  if (schema.anyOf) return [...new Set(schema.anyOf.map(inner))].join(" | ");
  if (schema.format === "binary") return "bytes";
  if (schema.type === "array") return `list[${schema.items ? inner(schema.items) : "Any"}]`;
  if (schema.type === "object") {
    const values = schema.additionalProperties;
    return `dict[str, ${typeof values === "object" ? inner(values) : "Any"}]`;
  }
  return PRIMITIVE_TYPES[schema.type ?? ""] ?? "Any";
};

const formatValue = (value: unknown): string =>
  value === null ? "None" : typeof value === "boolean" ? (value ? "True" : "False") : JSON.stringify(value);

const printOperations = (document: OpenApi): string => {
  const operations = listOperations(document);
  return [
    '"""The operations of the API as methods, printed from the OpenAPI document."""',
    "",
    "from __future__ import annotations",
    "",
    "from collections.abc import Iterator, Mapping",
    "from dataclasses import dataclass",
    "from typing import Any, Literal",
    "",
    "from . import schema",
    "",
    "",
    "@dataclass(frozen=True)",
    "class Operation:",
    '    """The address of an operation. ``body``: the content type of the request. ``has_key``: the server recognizes a repeated request."""',
    "",
    "    method: str",
    "    path: str",
    '    body: str = ""',
    "    has_key: bool = False",
    "",
    "",
    "class Operations:",
    "    def _call(",
    "        self,",
    "        operation: Operation,",
    "        path: Mapping[str, Any],",
    "        query: Mapping[str, Any],",
    "        body: Any = None,",
    "        headers: Mapping[str, str | None] | None = None,",
    "    ) -> Any:",
    "        raise NotImplementedError",
    "",
    "    def _stream(self, operation: Operation, path: Mapping[str, Any], query: Mapping[str, Any]) -> Iterator[Any]:",
    "        raise NotImplementedError",
    "",
    operations.map(printMethod).join("\n\n"),
    "",
  ].join("\n");
};

const toSnakeCase = (name: string): string =>
  name
    .replace(/-/g, "_")
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .toLowerCase();

const printMethod = (operation: Operation): string => {
  const { name, summary, description, method, path, parameters, body, answer, sends, hasKey } = operation;
  const inPath = parameters.filter((one) => one.in === "path");
  const inQuery = parameters.filter((one) => one.in === "query");
  const inHeader = parameters.filter((one) => one.in === "header");
  const named = [...inQuery, ...inHeader];
  const keywords = [
    ...(body ? [`body: ${formatType(body.schema, qualifyName)}${body.isRequired ? "" : " | None = None"}`] : []),
    ...named
      .filter(({ required }) => required)
      .map((one) => `${toSnakeCase(one.name)}: ${formatType(one.schema, qualifyName)}`),
    ...named
      .filter(({ required }) => !required)
      .map((one) => `${toSnakeCase(one.name)}: ${formatOptional(one)} = None`),
    ...(body && body.type !== "application/json" ? [`content_type: str = ${JSON.stringify(body.type)}`] : []),
    ...(hasKey ? ["idempotency_key: str | None = None"] : []),
  ];
  const pythonParameters = [
    "self",
    ...inPath.map((one) => `${toSnakeCase(one.name)}: str`),
    ...(keywords.length > 0 ? ["*", ...keywords] : []),
  ];
  const type = sends
    ? `Iterator[${formatType(sends, qualifyName)}]`
    : answer
      ? formatType(answer.schema, qualifyName)
      : "None";
  const fields = [
    ...[JSON.stringify(method), JSON.stringify(path)],
    ...(body ? [JSON.stringify(body.type)] : []),
    ...(hasKey ? ["has_key=True"] : []),
  ].join(", ");
  const headers = [
    ...inHeader.map((one) => `${JSON.stringify(one.name)}: ${toSnakeCase(one.name)}`),
    ...(body && body.type !== "application/json" ? ['"Content-Type": content_type'] : []),
    ...(hasKey ? ['"Idempotency-Key": idempotency_key'] : []),
  ];
  const pythonArguments = [
    ...[`Operation(${fields})`, formatDictionary(inPath), formatDictionary(inQuery)],
    ...(sends ? [] : [body ? "body" : "None"]),
    ...(headers.length > 0 ? [`{${headers.join(", ")}}`] : []),
  ];
  return [
    `    def ${toSnakeCase(name)}(${pythonParameters.join(", ")}) -> ${type}:`,
    ...formatDocstring([`${summary}.`, description].filter(Boolean).join("\n\n"), 8),
    `        return self._${sends ? "stream" : "call"}(${pythonArguments.join(", ")})`,
  ].join("\n");
};

const formatOptional = ({ schema }: Parameter): string => {
  const type = formatType(schema, qualifyName);
  return type.endsWith("| None") || type === "Any" ? type : `${type} | None`;
};

const formatDictionary = (parameters: readonly Parameter[]): string =>
  `{${parameters.map(({ name }) => `${JSON.stringify(name)}: ${toSnakeCase(name)}`).join(", ")}}`;

const formatDocstring = (text: string | undefined, indent: number): string[] => {
  if (!text) return [];
  const space = " ".repeat(indent);
  const lines = text.replace(/\\/g, "\\\\").replace(/"""/g, '\\"""').split("\n");
  return lines.length === 1
    ? [`${space}"""${lines[0]}"""`]
    : [`${space}"""${lines[0]}`, ...lines.slice(1).map((line) => (line === "" ? "" : space + line)), `${space}"""`];
};
