// The operations of the OpenAPI document, read from a running server. The tables of bad input and the fuzzer use them, so that a new route
// is covered once it is described.

export type Schema = {
  type?: string;
  description?: string;
  format?: string;
  enum?: unknown[];
  pattern?: string;
  nullable?: boolean;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  minItems?: number;
  maxItems?: number;
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: boolean | Schema;
  anyOf?: Schema[];
  default?: unknown;
  "x-zero"?: string;
  $ref?: string;
  allOf?: Schema[];
};

export type Parameter = {
  in: "path" | "query" | "header";
  name: string;
  required?: boolean;
  description?: string;
  schema: Schema;
  example?: unknown;
};

/** Resolves references in a value of the document. */
const makeInliner = (document: Document) => {
  const resolved = new Map<string, unknown>();
  const resolveReference = (ref: string): unknown => {
    const [, ...path] = ref.split("/");
    const target = path.reduce((value, key) => (value as Record<string, unknown>)[key], document as unknown);
    if (!resolved.has(ref)) resolved.set(ref, inline(target));
    return resolved.get(ref);
  };
  const inline = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(inline);
    if (typeof value !== "object" || value === null) return value;
    if ("$ref" in value) return resolveReference(value.$ref as string);
    const { allOf, ...rest } = Object.fromEntries(Object.entries(value).map(([key, member]) => [key, inline(member)]));
    return Array.isArray(allOf) ? Object.assign({}, ...allOf, rest) : rest;
  };
  return inline;
};

type Content = Record<string, { schema: Schema; example?: unknown }>;

/** An operation as the document describes it. */
export type DescribedOperation = {
  operationId: string;
  tags?: string[];
  summary?: string;
  security?: Record<string, string[]>[];
  parameters?: Parameter[];
  requestBody?: { required: boolean; content: Content };
  responses: Record<string, { description: string; content?: Content }>;
};

export type Document = {
  paths: Record<string, Record<string, DescribedOperation>>;
  tags: { name: string }[];
  servers: { url: string; description: string }[];
  components: { schemas: Record<string, Schema>; responses: Record<string, unknown> };
};

export type Caller = "user" | "agent" | "worker";

export type Operation = {
  /** `GET /api/v2/users/{user}`. */
  name: string;
  method: string;
  path: string;
  /** Who may call the operation; an empty list means that anonymous clients may. */
  callers: Caller[];
  parameters: Parameter[];
  /** The schema of a JSON body, if there is one. */
  body: Schema | undefined;
  /** The maximum bytes of a body; undefined if it is unlimited. */
  bodyLimit: number | undefined;
  described: DescribedOperation;
};

const CALLERS: Record<string, Caller> = { session_token: "user", agent_token: "agent", provisioner_key: "worker" };

export const fetchDocument = async (url: URL): Promise<Document> =>
  (await (await fetch(new URL("/swagger/json", url))).json()) as Document;

/** Returns all operations, with references in their bodies and responses resolved. */
export const listOperations = (document: Document): Operation[] =>
  Object.entries(makeInliner(document)(document.paths) as Document["paths"]).flatMap(([path, item]) =>
    Object.entries(item).map(([verb, described]): Operation => {
      const method = verb.toUpperCase();
      const limit = /larger than (\d+) bytes/.exec(described.responses["413"]?.description ?? "")?.[1];
      return {
        name: `${method} ${path}`,
        method,
        path,
        callers: (described.security ?? []).flatMap((scheme) =>
          Object.keys(scheme).map((name) => CALLERS[name] as Caller),
        ),
        parameters: described.parameters ?? [],
        body: findJsonBody(described),
        bodyLimit: described.requestBody && limit ? Number(limit) : undefined,
        described,
      };
    }),
  );

/** Returns the schema of a JSON body. A file may also be JSON, but is sent as bytes, so it has none. */
const findJsonBody = ({ requestBody }: DescribedOperation): Schema | undefined => {
  const schema = requestBody?.content["application/json"]?.schema;
  return schema?.format === "binary" ? undefined : schema;
};

/** Returns the path with its parameters and a query. */
export const fillPath = (
  operation: Operation,
  path: Record<string, string>,
  query: Record<string, string | undefined> = {},
): string => {
  const filledPath = operation.path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(path[name] ?? ""));
  const search = new URLSearchParams(
    Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as [string, string]])),
  ).toString();
  return search ? `${filledPath}?${search}` : filledPath;
};
