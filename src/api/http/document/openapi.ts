// Generates the OpenAPI document. @elysiajs/swagger collects it from the routes; the result is then converted to valid OpenAPI 3.0: one
// content type per body instead of three, no JSON Schema keywords that 3.0 lacks, and the same error body everywhere.
import { type AnyElysia, Elysia } from "elysia";
import { VERSION } from "#base/version.ts";
import { NAME } from "#schema/shape-names.ts";
import { getBodyLimit } from "../body/body.ts";
import { isAllOptional } from "../body/body-shape.ts";
import { SESSION_HEADER } from "../identify.ts";
import { DECLARED, type OperationOptions } from "../operation.ts";
import { DOCUMENTED } from "../query.ts";
import { Generic, STATUS_DESCRIPTIONS } from "../responses.ts";
import { type Json, type JsonObject, Shapes } from "./shapes.ts";
import { DESCRIPTION, TAGS } from "./words.ts";

/** Returns the document of these routes. `routes` is mounted on a separate app that serves nothing but the document. */
export const openApiDocument = async (routes: AnyElysia): Promise<JsonObject> => {
  // Imported lazily, because it loads schema libraries that would slow down startup.
  const { swagger } = await import("@elysiajs/swagger");
  const app = new Elysia().use(routes).use(
    swagger({
      path: "/generated",
      exclude: ["/generated", "/generated/json"],
      documentation: {
        info: {
          title: "Slipway",
          version: VERSION,
          description: DESCRIPTION,
          license: { name: "Apache-2.0", url: "https://www.apache.org/licenses/LICENSE-2.0" },
        },
        servers: [{ url: "/", description: "The server that answered this document." }],
        tags: TAGS,
        security: [{ session_token: [] }],
        components: {
          securitySchemes: {
            session_token: {
              type: "apiKey",
              in: "header",
              name: SESSION_HEADER,
              description: "A session token or an API token. Almost all operations accept it.",
            },
            provisioner_key: {
              type: "apiKey",
              in: "header",
              name: SESSION_HEADER,
              description: "The provisioner key of an external worker.",
            },
            agent_token: {
              type: "apiKey",
              in: "header",
              name: SESSION_HEADER,
              description: "The agent token of a workspace agent.",
            },
          },
        },
      },
    }),
  );
  const response = await app.handle(new Request("http://localhost/generated/json"));
  const document = (await response.json()) as JsonObject;
  const paths = document.paths as JsonObject;
  const shapes = new Shapes();
  const operations = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item as JsonObject).map(([method, operation]) => ({
      path,
      method,
      operation: operation as JsonObject,
    })),
  );
  const declarations = operations.map(({ operation }) => (removeKey(operation, DECLARED) ?? {}) as OperationOptions);
  // Bodies are named after responses, so responses come first.
  for (const [i, { path, operation }] of operations.entries()) {
    // A root route that is also served below the API keeps the short ID there.
    if (`/api/v2${path}` in paths) operation.operationId += "AtRoot";
    convertAnswers(operation, path, declarations[i] as OperationOptions, shapes);
  }
  for (const [i, { method, operation }] of operations.entries()) {
    convertBody(operation, declarations[i] as OperationOptions, shapes);
    addExamples(operation, method, declarations[i] as OperationOptions);
  }
  const { components } = document as { components: JsonObject };
  const errorShapes = new Shapes();
  errorShapes.answer({ ...Generic, [NAME]: ERROR } as unknown as Json, ERROR);
  components.responses = listErrorResponses();
  components.schemas = { ...errorShapes.components, ...sortKeys(shapes.components) };
  return document;
};

const sortKeys = (object: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1)));

/** The body of every error. */
const ERROR = "Error";
const JSON_TYPE = "application/json";
const ERROR_CONTENT: JsonObject = { [JSON_TYPE]: { schema: { $ref: `#/components/schemas/${ERROR}` } } };

const convertAnswers = (
  operation: JsonObject,
  path: string,
  { headers = {}, accepts, answers, sends, takes }: OperationOptions,
  shapes: Shapes,
): void => {
  const headerParameters = Object.entries(headers).map(([name, header]) => ({
    ...(header as JsonObject),
    in: "header",
    name,
  }));
  if (headerParameters.length > 0)
    operation.parameters = [...((operation.parameters ?? []) as Json[]), ...headerParameters];
  const isSecured = !Array.isArray(operation.security) || operation.security.length > 0;
  if (JSON.stringify(operation.security) === '[{"agent_token":[]}]') operation.tags = ["Agent daemon"];
  const toShape = (schema: Json) => shapes.answer(schema, `${capitalize(operation.operationId as string)}Result`);
  operation.responses = convertResponses(operation.responses as JsonObject, answers, toShape, [
    ...(answers ? ["200"] : []),
    ...(isSecured ? ["401"] : []),
    ...(operation.parameters ? ["400"] : []),
    ...(path.includes("{") ? ["404"] : []),
    ...(operation.requestBody || accepts ? ["400", "413", "415"] : []),
  ]);
  if (sends) operation["x-sends"] = toShape(sends as unknown as Json);
  if (takes) operation["x-takes"] = toShape(takes as unknown as Json);
  for (const parameter of (operation.parameters ?? []) as JsonObject[]) {
    applyDocumentedType(parameter);
    parameter.schema = toShape(parameter.schema as Json);
    if (parameter.examples === undefined) delete parameter.examples;
    if (Array.isArray(parameter.examples)) {
      parameter.example = parameter.examples[0] as Json;
      delete parameter.examples;
    }
  }
};

/** Documents a parameter by its meaning instead of as the text a handler reads. */
const applyDocumentedType = (parameter: JsonObject): void => {
  const documented = (parameter.schema as JsonObject)[DOCUMENTED] as JsonObject | undefined;
  if (!documented) return;
  const { required, example, ...schema } = documented;
  parameter.schema = schema;
  if (example !== undefined) parameter.example = schema.type === "array" ? [example] : example;
  if (required !== undefined) parameter.required = true;
};

const convertBody = (operation: JsonObject, declared: OperationOptions, shapes: Shapes): void => {
  const body = operation.requestBody as JsonObject | undefined;
  const toShape = (schema: Json) => shapes.body(schema, `${capitalize(operation.operationId as string)}Request`);
  if (body)
    operation.requestBody = {
      required: !isBodyOptional(body),
      content: convertContent(body, toShape, declared.accepts),
    };
  else if (declared.accepts) operation.requestBody = { required: true, content: toOpaqueContent(declared.accepts) };
  const tooLarge = (operation.responses as JsonObject)["413"] as JsonObject | undefined;
  const description = `The body is larger than ${getBodyLimit(declared)} bytes.`;
  if (tooLarge) (operation.responses as JsonObject)["413"] = { description, content: ERROR_CONTENT };
};

const capitalize = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1);

/** Same rule as in the HTTP layer (rule HT-24). */
const isBodyOptional = ({ content }: JsonObject): boolean =>
  Object.values(content as JsonObject).every((one) => isAllOptional(((one as JsonObject).schema ?? {}) as JsonObject));

/** Returns the shared error response of a status, unless an operation adds something. A named response has more members than the others. */
const convertErrorResponse = (
  status: string,
  description: string,
  answer: JsonObject,
  toShape: (schema: Json) => Json,
): JsonObject => {
  if (NAME in answer) return { description, content: convertContent(answer, toShape) };
  if (description === STATUS_DESCRIPTIONS[Number(status)]) return { $ref: `#/components/responses/Error${status}` };
  return { description, content: ERROR_CONTENT };
};

/** Returns the meaning of each status in most operations. */
const listErrorResponses = (): JsonObject =>
  Object.fromEntries(
    Object.entries(STATUS_DESCRIPTIONS)
      // 413 is described with each operation's own limit.
      .filter(([status]) => Number(status) >= 400 && status !== "413")
      .map(([status, description]) => [`Error${status}`, { description, content: ERROR_CONTENT }]),
  );

/** Returns the responses ordered by status. `impliedStatuses` are statuses that the HTTP layer itself can return, and those of a download. */
const convertResponses = (
  declared: JsonObject,
  answers: readonly string[] | undefined,
  toShape: (schema: Json) => Json,
  impliedStatuses: string[],
): JsonObject => {
  const converted: JsonObject = {};
  for (const status of [...new Set([...Object.keys(declared), ...impliedStatuses])].sort()) {
    const answer = (declared[status] ?? {}) as JsonObject;
    const description = answer.description ?? STATUS_DESCRIPTIONS[Number(status)] ?? "The response.";
    const hasBody = answer.content !== undefined && Object.keys(answer.content as JsonObject).length > 0;
    if (Number(status) >= 400) converted[status] = convertErrorResponse(status, description as string, answer, toShape);
    else if (status.startsWith("2") && answers) {
      const json = hasBody && answers.includes(JSON_TYPE) ? convertContent(answer, toShape) : {};
      converted[status] = {
        description,
        content: { ...toOpaqueContent(answers.filter((type) => type !== JSON_TYPE)), ...json },
      };
    } else converted[status] = hasBody ? { description, content: convertContent(answer, toShape) } : { description };
  }
  return converted;
};

/**
 * Adds working examples that pages can fill their fields with. Paths of deletions get no example, which would otherwise be deleted by
 * accident.
 */
const addExamples = (operation: JsonObject, method: string, { example }: OperationOptions): void => {
  const content = (operation.requestBody as JsonObject | undefined)?.content as JsonObject | undefined;
  const media = content?.[JSON_TYPE] as JsonObject | undefined;
  if (example && media) media.example = example as JsonObject;
  if (method === "delete") return;
  for (const parameter of (operation.parameters ?? []) as JsonObject[]) {
    if (parameter.in !== "path") continue;
    if (String(parameter.description).includes("`me`")) parameter.example = "me";
    if (String(parameter.description).includes("`default`")) parameter.example = "default";
  }
};

const removeKey = (object: JsonObject, key: string): Json | undefined => {
  const value = object[key];
  delete object[key];
  return value;
};

const convertContent = (
  holder: JsonObject,
  toShape: (schema: Json) => Json,
  types: readonly string[] = [JSON_TYPE],
): JsonObject => {
  const [first] = Object.values(holder.content as JsonObject) as JsonObject[];
  // The name of a response is next to its content.
  const name = holder[NAME];
  const schema = toShape({
    ...(first?.schema as JsonObject | undefined),
    ...(name === undefined ? {} : { [NAME]: name }),
  });
  return Object.fromEntries(types.map((type) => [type, { schema }]));
};

/** Bodies that are not JSON: text or bytes. */
const toOpaqueContent = (types: readonly string[]): JsonObject =>
  Object.fromEntries(
    types.map((type): [string, JsonObject] => [
      type,
      { schema: type.startsWith("text/") ? { type: "string" } : { type: "string", format: "binary" } },
    ]),
  );
