// Checks for tool definitions that real model servers reject, in all protocols. Pure; used by receiver-rules.ts.

export type Json = Readonly<Record<string, unknown>>;

/** Returns what is wrong with a request body; undefined if nothing is. `path`: the path of the request, or the model's name. */
export type Check = (body: Json, path: string) => string | undefined;

export const list = <T = Json>(value: unknown): readonly T[] => (Array.isArray(value) ? value : []);
export const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export const findFirstProblem = <T>(
  items: Iterable<T>,
  problem: (item: T, index: number) => string | undefined,
): string | undefined => {
  let index = 0;
  for (const item of items) {
    const found = problem(item, index++);
    if (found !== undefined) return found;
  }
  return undefined;
};

type Tool = { readonly name: string; readonly schema: Json };
const listTools = (body: Json): readonly Tool[] =>
  list(body.tools).flatMap((tool): Tool[] => {
    const call = isObject(tool.function) ? tool.function : undefined;
    if (call) return [{ name: String(call.name), schema: call.parameters as Json }];
    const declared = list(tool.functionDeclarations);
    if (declared.length > 0)
      return declared.map((declaration) => ({
        name: String(declaration.name),
        schema: declaration.parametersJsonSchema as Json,
      }));
    if (isObject(tool.input_schema)) return [{ name: String(tool.name), schema: tool.input_schema }];
    return tool.type === "function" ? [{ name: String(tool.name), schema: tool.parameters as Json }] : [];
  });

const tools =
  (problem: (tool: Tool, index: number) => string | undefined): Check =>
  (body) =>
    findFirstProblem(listTools(body), problem);

/** Yields a schema and every schema nested in it. */
function* schemasIn(schema: unknown, path = "$"): Iterable<readonly [Json, string]> {
  if (!isObject(schema)) return;
  yield [schema, path];
  for (const [name, propertySchema] of Object.entries(isObject(schema.properties) ? schema.properties : {}))
    yield* schemasIn(propertySchema, `${path}.${name}`);
  for (const name of ["items", "additionalProperties", "not", "if"]) yield* schemasIn(schema[name], `${path}.${name}`);
  for (const name of ["anyOf", "oneOf", "allOf", "prefixItems"])
    for (const [index, branch] of list(schema[name]).entries()) yield* schemasIn(branch, `${path}.${name}.${index}`);
}

const checkSchemas = (problem: (schema: Json, path: string) => string | undefined): Check =>
  tools(({ name, schema }) =>
    findFirstProblem(schemasIn(schema), ([nested, path]) => {
      const found = problem(nested, path);
      return found && `Invalid schema for function '${name}': In context=${path}, ${found}`;
    }),
  );

export const rootIsObject = tools(({ name, schema }) =>
  schema?.type === "object" ? undefined : `Invalid schema for function '${name}': schema must be of type "object"`,
);
export const rootHasNoCombinators = tools(({ schema }, index) =>
  ["oneOf", "anyOf", "allOf", "enum", "not"].some((name) => name in schema)
    ? `tools.${index}.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level`
    : undefined,
);
export const arraysHaveItems = checkSchemas(({ type, items }) =>
  (type === "array" || list(type).includes("array" as never)) && !isObject(items)
    ? "array schema missing items"
    : undefined,
);
export const objectsHaveProperties = checkSchemas(({ type, properties }) =>
  type === "object" && !isObject(properties) ? "object schema missing properties" : undefined,
);
export const requiredIsKnown = checkSchemas(({ required, properties }) => {
  const missing = list<string>(required).find((name) => !isObject(properties) || !(name in properties));
  return missing === undefined ? undefined : `required[0]: property '${missing}' is not defined`;
});
export const isDraft2020: Check = checkSchemas((schema) => {
  if (Array.isArray(schema.items)) return "JSON schema is invalid. It must match JSON Schema draft 2020-12";
  if (typeof schema.exclusiveMinimum === "boolean" || typeof schema.exclusiveMaximum === "boolean")
    return "JSON schema is invalid. It must match JSON Schema draft 2020-12";
  if ("required" in schema && !Array.isArray(schema.required)) return "required must be an array";
  if (Object.values(schema).some((value) => value === null)) return "null is not of a type that is allowed";
  return undefined;
});
export const refsResolve: Check = checkSchemas(({ $ref }) =>
  $ref === undefined ? undefined : "$ref cannot be resolved",
);
export const keysMatch = (pattern: RegExp): Check =>
  checkSchemas(({ properties }) => {
    const invalidName = Object.keys(isObject(properties) ? properties : {}).find((name) => !pattern.test(name));
    return invalidName === undefined ? undefined : `Property keys should match pattern '${pattern.source}'`;
  });
export const namesMatch = (pattern: RegExp): Check =>
  tools(({ name }, index) =>
    pattern.test(name)
      ? undefined
      : `Invalid 'tools[${index}].function.name': string does not match pattern '${pattern.source}'.`,
  );
export const namesAreUnique: Check = (body) => {
  const names = listTools(body).map(({ name }) => name);
  return new Set(names).size === names.length ? undefined : "tools: Tool names must be unique.";
};
export const limitTools =
  (max: number): Check =>
  (body) =>
    listTools(body).length > max
      ? `Invalid 'tools': array too long. Expected an array with maximum length ${max}, but got an array with length ${listTools(body).length} instead.`
      : undefined;
export const typeIsInBranches = checkSchemas(({ anyOf, type, properties, items }) =>
  anyOf !== undefined && type !== undefined && properties === undefined && items === undefined
    ? "when using anyOf, type should be defined in anyOf items instead of the parent schema"
    : undefined,
);
export const patternsAreAnchored = checkSchemas(({ pattern }) =>
  typeof pattern === "string" && !(pattern.startsWith("^") && pattern.endsWith("$"))
    ? "JSON schema conversion failed: Pattern must start with '^' and end with '$'"
    : undefined,
);
