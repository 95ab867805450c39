// The OpenAPI document. @elysiajs/swagger collects it from the routes; what it writes is then brought into valid OpenAPI 3.0: one
// content type for each body instead of three, no JSON Schema words that 3.0 does not know, and the same error body everywhere.
import { type AnyElysia, Elysia } from "elysia";
import { VERSION } from "#base/version.ts";
import { isStrict } from "#schema/strict.ts";
import { bodyLimit } from "../body/body.ts";
import { isAllOptional } from "../body/body-shape.ts";
import { SESSION_HEADER } from "../identify.ts";
import { DECLARED, type Declared } from "../operation.ts";
import { Generic, WORDS } from "../responses.ts";

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
type JsonObject = { [key: string]: Json };

const TAGS: { name: string; description: string }[] = [
  { name: "General", description: "Is it alive, which version is it." },
  { name: "Users", description: "People, their sign-ins and their API tokens." },
  { name: "Second factors", description: "Authenticator apps, recovery codes, and confirming who one is." },
  { name: "API keys", description: "Session keys and tokens: make, list, expire, delete." },
  { name: "External accounts", description: "Accounts at git hosts and other services that people link." },
  { name: "Organizations", description: "Who owns templates and workspaces together." },
  { name: "Members", description: "Members of an organization and their roles there." },
  { name: "Templates", description: "What workspaces are made from: uploads, versions, templates." },
  { name: "Workspaces", description: "Workspaces and how to watch them." },
  { name: "Port sharing", description: "Ports of a workspace that others may open." },
  { name: "Builds", description: "Starting, stopping and deleting a workspace, with logs." },
  { name: "Provisioners", description: "Workers of their own that bring workspaces to life, and their keys." },
  { name: "Agents", description: "Workspace agents as people see them: state and logs." },
  { name: "Notifications", description: "What people are told: inbox, preferences, e-mail and browsers." },
  { name: "Applications", description: "Apps and ports on hosts of their own." },
  { name: "Chats", description: "Sessions with a coding agent: messages, queues, turns, and how to follow them." },
  { name: "Administration", description: "The server itself, for owners: its health, settings, backups and log." },
  { name: "Hooks", description: "What programs of the deployment have decided about chats." },
  { name: "Models", description: "Who provides language models, and the models that chats can use." },
  { name: "Skills", description: "Instructions that people have written for all of their chats." },
  { name: "MCP servers", description: "Servers whose tools an organization offers to its chats." },
  { name: "Insights", description: "Who used what, for how long, and how fast it was." },
  { name: "Audit", description: "Who changed what, when and from where." },
  { name: "Agent daemon", description: "What the program inside a workspace calls with its agent token." },
];

const DESCRIPTION = `Sign in with \`POST /api/v2/users/login\`, or make a token on [the page of API tokens](/settings/tokens), and send it in
the header \`${SESSION_HEADER}\`. The button *Authorize* does that for every call made from this page (the first of its three fields is
the one for people). If you are signed in to Slipway in this browser, calls work without it.

Errors have one shape: \`{message, detail, validations}\`. A 4xx means that nothing was changed.`;

/** The document of these routes; `routes` is mounted on an app of its own, so that nothing but the document is served from it. */
export const openApiDocument = async (routes: AnyElysia): Promise<JsonObject> => {
  // Read when somebody asks for the document: it brings schema libraries along that a start should not pay for.
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
        tags: TAGS,
        security: [{ session_token: [] }],
        components: {
          securitySchemes: {
            session_token: {
              type: "apiKey",
              in: "header",
              name: SESSION_HEADER,
              description: "A person: the token from signing in, or an API token. Nearly every call takes this one.",
            },
            provisioner_key: {
              type: "apiKey",
              in: "header",
              name: SESSION_HEADER,
              description: "A worker of its own: its provisioner key.",
            },
            agent_token: {
              type: "apiKey",
              in: "header",
              name: SESSION_HEADER,
              description: "The program inside a workspace: its agent token.",
            },
          },
        },
      },
    }),
  );
  const response = await app.handle(new Request("http://localhost/generated/json"));
  const document = (await response.json()) as JsonObject;
  const paths = document.paths as JsonObject;
  for (const [path, item] of Object.entries(paths)) {
    // What is served below the API as well has its short name there.
    const place = `/api/v2${path}` in paths ? `/root${path}` : path;
    for (const [method, operation] of Object.entries(item as JsonObject)) {
      (operation as JsonObject).operationId = operationId(method, place);
      const declared = (take(operation as JsonObject, DECLARED) ?? {}) as Declared;
      tidyOperation(operation as JsonObject, path, declared);
      addExamples(operation as JsonObject, method, declared);
    }
  }
  const { components } = document as { components: JsonObject };
  components.schemas = { Generic: tidySchema(structuredClone(Generic) as unknown as Json) };
  return document;
};

/** A name for generated clients: `GET /api/v2/users/{user}/keys` is getUsersUserKeys. */
const operationId = (method: string, path: string): string =>
  method +
  path
    .replace("/api/v2", "")
    .split(/[^A-Za-z0-9]+/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join("");

/** The generic body, which every error has, is written down once. */
const GENERIC: JsonObject = { "application/json": { schema: { $ref: "#/components/schemas/Generic" } } };

const tidyOperation = (operation: JsonObject, path: string, declared: Declared): void => {
  const { accepts, answers } = declared;
  const body = operation.requestBody as JsonObject | undefined;
  if (body) {
    const content = contentOf(body, accepts);
    for (const one of Object.values(content)) takeNull((one as JsonObject).schema as JsonObject);
    operation.requestBody = { required: !takesNothing(body), content };
  }
  if (!body && accepts) operation.requestBody = { required: true, content: opaque(accepts) };
  const isSecured = !Array.isArray(operation.security) || operation.security.length > 0;
  if (JSON.stringify(operation.security) === '[{"agent_token":[]}]') operation.tags = ["Agent daemon"];
  operation.responses = tidyResponses(operation.responses as JsonObject, answers, [
    ...(answers ? ["200"] : []),
    ...(isSecured ? ["401"] : []),
    ...(operation.parameters ? ["400"] : []),
    ...(path.includes("{") ? ["404"] : []),
    ...(operation.requestBody ? ["400", "413", "415"] : []),
  ]);
  const tooLarge = operation.responses["413"] as JsonObject | undefined;
  if (tooLarge) tooLarge.description = `The body is larger than ${bodyLimit(declared)} bytes.`;
  for (const parameter of (operation.parameters ?? []) as JsonObject[]) {
    parameter.schema = tidySchema(parameter.schema as Json);
    if (parameter.examples === undefined) delete parameter.examples;
    if (Array.isArray(parameter.examples)) {
      parameter.example = parameter.examples[0] as Json;
      delete parameter.examples;
    }
  }
};

/** Optional members may be null, as the edge takes them (rule HT-29). */
const takeNull = (schema: JsonObject): void => {
  const required = (schema.required ?? []) as string[];
  for (const [name, member] of Object.entries((schema.properties ?? {}) as JsonObject)) {
    takeNull(member as JsonObject);
    if (!required.includes(name) && Object.keys(member as JsonObject).some((key) => key === "type" || key === "anyOf"))
      (member as JsonObject).nullable = true;
  }
  if (schema.items) takeNull(schema.items as JsonObject);
  for (const member of (schema.anyOf ?? []) as JsonObject[]) takeNull(member);
};

/** As the edge does (rule HT-24). */
const takesNothing = ({ content }: JsonObject): boolean =>
  Object.values(content as JsonObject).every((one) => isAllOptional(((one as JsonObject).schema ?? {}) as JsonObject));

/** The answers in ascending order of status; `always` are those that the edge itself may answer, and what a download answers. */
const tidyResponses = (declared: JsonObject, answers: readonly string[] | undefined, always: string[]): JsonObject => {
  const tidy: JsonObject = {};
  for (const status of [...new Set([...Object.keys(declared), ...always])].sort()) {
    const answer = (declared[status] ?? {}) as JsonObject;
    const description = answer.description ?? WORDS[Number(status)] ?? "The answer.";
    const hasBody = answer.content !== undefined && Object.keys(answer.content as JsonObject).length > 0;
    if (status.startsWith("4") || status.startsWith("5")) tidy[status] = { description, content: GENERIC };
    else if (status.startsWith("2") && answers) tidy[status] = { description, content: opaque(answers) };
    else tidy[status] = hasBody ? { description, content: contentOf(answer) } : { description };
  }
  return tidy;
};

/** Something that works, for pages that fill their fields with it. No path of a deletion is filled in: nobody shall delete what an example names. */
const addExamples = (operation: JsonObject, method: string, { example }: Declared): void => {
  const content = (operation.requestBody as JsonObject | undefined)?.content as JsonObject | undefined;
  const media = content?.["application/json"] as JsonObject | undefined;
  if (example && media) media.example = example as JsonObject;
  if (method === "delete") return;
  for (const parameter of (operation.parameters ?? []) as JsonObject[]) {
    if (parameter.in !== "path") continue;
    if (String(parameter.description).includes("`me`")) parameter.example = "me";
    if (String(parameter.description).includes("`default`")) parameter.example = "default";
  }
};

const take = (from: JsonObject, key: string): Json | undefined => {
  const value = from[key];
  delete from[key];
  return value;
};

const contentOf = (holder: JsonObject, types: readonly string[] = ["application/json"]): JsonObject => {
  const [first] = Object.values(holder.content as JsonObject) as JsonObject[];
  const schema = tidySchema((first?.schema ?? {}) as Json);
  return Object.fromEntries(types.map((type) => [type, { schema }]));
};

/** Bodies that are no JSON: text, or bytes. */
const opaque = (types: readonly string[]): JsonObject =>
  Object.fromEntries(
    types.map((type): [string, JsonObject] => [
      type,
      { schema: type.startsWith("text/") ? { type: "string" } : { type: "string", format: "binary" } },
    ]),
  );

const UNKNOWN_TO_3_0 = new Set(["$id", "$schema", "examples", "patternProperties", "error", "x-strict"]);

/** A JSON Schema as TypeBox writes it, in the words of OpenAPI 3.0. */
const tidySchema = (schema: Json): Json => {
  if (Array.isArray(schema)) return schema.map(tidySchema);
  if (schema === null || typeof schema !== "object") return schema;
  const out: JsonObject = {};
  for (const [key, value] of Object.entries(schema)) {
    if (UNKNOWN_TO_3_0.has(key)) continue;
    // Elysia writes it into what it drops quietly, once the route has been called.
    if (key === "additionalProperties" && value === false && !isStrict(schema)) continue;
    if (key === "const") out.enum = [value];
    else if (key === "properties") out.properties = mapValues(value as JsonObject, tidySchema);
    else out[key] = key === "default" || key === "enum" || key === "required" ? value : tidySchema(value);
  }
  const values = schema.patternProperties as JsonObject | undefined;
  if (values) out.additionalProperties = tidySchema(Object.values(values)[0] as Json);
  return tidyUnion(out);
};

const mapValues = (object: JsonObject, map: (value: Json) => Json): JsonObject =>
  Object.fromEntries(Object.entries(object).map(([key, value]) => [key, map(value)]));

/** A union with null becomes `nullable`, a union of constants becomes one enum. */
const tidyUnion = (schema: JsonObject): Json => {
  const members = schema.anyOf as JsonObject[] | undefined;
  if (!members) return schema.type === "null" ? { ...schema, type: "string", nullable: true } : schema;
  const { anyOf: _, ...rest } = schema;
  const given = members.filter((member) => !(member.nullable === true && member.type === "string" && !member.enum));
  const nullable: JsonObject = given.length < members.length ? { nullable: true } : {};
  const constants = given.every((member) => Array.isArray(member.enum) && member.type === given[0]?.type);
  if (constants && given.length > 0) {
    return {
      ...rest,
      ...nullable,
      type: given[0]?.type ?? "string",
      enum: given.flatMap((member) => member.enum as Json[]),
    };
  }
  if (given.length === 1) return { ...(given[0] as JsonObject), ...rest, ...nullable };
  return { ...rest, ...nullable, anyOf: given };
};
