// Prints the types of all API calls from the routes of the server. ./routes-table.ts writes them to `src/schema/routes.ts`.
import { join } from "node:path";
import type { TSchema } from "@sinclair/typebox";
import { NAME } from "#schema/shape-names.ts";
import { listSchemas } from "#src/api/http/answers/answer-validators.ts";
import { getOptions } from "#src/api/http/operation.ts";
import type { DeclaredRoute } from "./declared-routes.ts";

const ROOT = join(import.meta.dir, "../..");

/** The exported type of each shape: file and name, by shape name. */
type ExportedTypes = ReadonlyMap<string, { readonly file: string; readonly type: string }>;

const findExportedTypes = async (): Promise<ExportedTypes> => {
  const exportedTypes = new Map<string, { file: string; type: string }>();
  for (const file of new Bun.Glob("**/*.ts").scanSync(join(ROOT, "src/schema"))) {
    const text = await Bun.file(join(ROOT, "src/schema", file)).text();
    for (const [, type = "", name = ""] of text.matchAll(/^export const (\w+) = named\w*\(\s*"(\w+)"/gm))
      if (new RegExp(`^export type ${type} = `, "m").test(text)) exportedTypes.set(name, { file, type });
  }
  return exportedTypes;
};

/** Converts a schema to TypeScript source. `used` collects the names of the exported types in it. */
const toTypeSource = (schema: TSchema, exported: ExportedTypes, used: Set<string>): string => {
  const convert = (nested: TSchema) => toTypeSource(nested, exported, used);
  const name = schema[NAME] as string | undefined;
  if (name !== undefined && exported.has(name)) {
    used.add(name);
    return name;
  }
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.anyOf) return toUnionSource(schema.anyOf as TSchema[], convert);
  if (schema.type === "array") return `(${convert(schema.items as TSchema)})[]`.replace(/^\((\w+)\)/, "$1");
  if (schema.patternProperties) {
    const [values] = Object.values(schema.patternProperties as Record<string, TSchema>);
    return `Record<string, ${convert(values as TSchema)}>`;
  }
  if (schema.type === "object") return toObjectSource(schema, convert);
  return PLAIN[schema.type as string] ?? "unknown";
};

const PLAIN: Readonly<Record<string, string>> = {
  string: "string",
  integer: "number",
  number: "number",
  boolean: "boolean",
  null: "null",
  void: "undefined",
};

/** Converts a union. Omits the text form in which Elysia also accepts numbers in queries. */
const toUnionSource = (members: readonly TSchema[], convert: (schema: TSchema) => string): string => {
  const isNumber = members.some(({ type }) => type === "integer" || type === "number");
  const printed = members.filter(({ type, format }) => !(isNumber && type === "string" && format !== undefined));
  return [...new Set(printed.map(convert))].join(" | ");
};

const toObjectSource = ({ properties = {}, required = [] }: TSchema, convert: (schema: TSchema) => string): string => {
  const members = Object.entries(properties as Record<string, TSchema>).map(
    ([name, property]) => `${quoteName(name)}${required.includes(name) ? "" : "?"}: ${convert(property)}`,
  );
  return members.length === 0 ? "Record<string, unknown>" : `{ ${members.join("; ")} }`;
};

const quoteName = (name: string): string => (/^\w+$/.test(name) ? name : JSON.stringify(name));

/** The routes by path segment; `{}` stands for any. */
type Branch = { [segment: string]: Branch | string };

type Hooks = { detail?: { hide?: boolean }; body?: TSchema; query?: TSchema };

const toRouteType = (hooks: Hooks, exported: ExportedTypes, used: Set<string>): string => {
  const { body, query } = hooks;
  const successSchemas = Object.entries(listSchemas(hooks)).filter(([status]) => status.startsWith("2"));
  const responseType =
    [...new Set(successSchemas.map(([, schema]) => toTypeSource(schema, exported, used)))].join(" | ") || "unknown";
  const isOptional = body?.type === "object" && !(body.required?.length > 0);
  const bytes = getOptions(hooks).accepts ? "Bytes" : "undefined";
  const bodyType = body ? toTypeSource(body, exported, used) + (isOptional ? " | undefined" : "") : bytes;
  const requested = query ? Object.keys(query.properties as object).map((name) => JSON.stringify(name)) : [];
  return `Route<${responseType}, ${bodyType}, ${requested.join(" | ") || "never"}>`;
};

const formatBranch = (branch: Branch, depth: number): string =>
  Object.entries(branch)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([segment, value]) => {
      const name = `${"  ".repeat(depth)}readonly ${quoteName(segment)}: `;
      return typeof value === "string"
        ? `${name}${value};`
        : `${name}{\n${formatBranch(value, depth + 1)}\n${"  ".repeat(depth)}};`;
    })
    .join("\n");

/** Returns the text of `src/schema/routes.ts`. Git and the formatter ignore that file, so it is not formatted. */
export const printRoutes = async (routes: readonly DeclaredRoute[]): Promise<string> => {
  const exported = await findExportedTypes();
  const used = new Set<string>();
  const tree: Branch = {};
  for (const { method, path, hooks } of routes) {
    if (!path.startsWith("/api/v2/") || (hooks as Hooks).detail?.hide) continue;
    let branch = tree;
    for (const segment of path.slice("/api/v2/".length).replace(/\/$/, "").split("/")) {
      const key = segment.startsWith(":") ? "{}" : segment;
      branch[key] ??= {};
      branch = branch[key] as Branch;
    }
    branch[method] = toRouteType(hooks as Hooks, exported, used);
  }
  const imports = new Map<string, string[]>();
  for (const name of used) {
    const { file, type } = exported.get(name) as { file: string; type: string };
    imports.set(file, [...(imports.get(file) ?? []), type === name ? name : `${type} as ${name}`]);
  }
  const lines = [...imports].sort(([a], [b]) => (a < b ? -1 : 1));
  return `// Printed from the routes of the server by \`bun run routes\`; Git ignores it. What each call takes and answers.
import type { Bytes, Route } from "./route.ts";
${lines.map(([file, names]) => `import type { ${names.sort().join(", ")} } from "./${file}";`).join("\n")}

/** The routes below /api/v2, by the segments of their paths; \`{}\` stands for any one. */
export interface Routes {
${formatBranch(tree, 1)}
}
`;
};
