// Reads the OpenAPI document from which clients are generated, and the operations that become methods.
import { rmSync } from "node:fs";
import { join } from "node:path";
import type { ReleaseInputs } from "../inputs.ts";

export type Schema = {
  readonly type?: string;
  readonly format?: string;
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly nullable?: boolean;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly anyOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly $ref?: string;
};

export type Parameter = {
  readonly in: "path" | "query" | "header";
  readonly name: string;
  readonly required?: boolean;
  readonly schema: Schema;
};

type Content = Readonly<Record<string, { readonly schema: Schema }>>;

type OperationDescription = {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly required?: boolean; readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly description?: string; readonly content?: Content }>>;
  readonly "x-sends"?: Schema;
};

export type OpenApi = {
  readonly paths: Readonly<Record<string, Readonly<Record<string, OperationDescription>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
};

/** An operation that becomes a method of a client. */
export type Operation = {
  readonly name: string;
  readonly summary: string;
  readonly description: string;
  readonly method: string;
  readonly path: string;
  readonly parameters: readonly Parameter[];
  readonly body: { readonly type: string; readonly schema: Schema; readonly isRequired: boolean } | undefined;
  /** The body of a successful response; undefined if the response has none. */
  readonly answer: { readonly type: string; readonly schema: Schema } | undefined;
  /** The schema of each event of a stream. */
  readonly sends: Schema | undefined;
  readonly hasKey: boolean;
};

export const IDEMPOTENCY_KEY_HEADER = "Idempotency-Key";
const EVENT_STREAM_TYPE = "text/event-stream";

/** Starts a temporary server from this source and returns its OpenAPI document. */
export const readDocument = async ({ root, scratch, env }: ReleaseInputs): Promise<OpenApi> => {
  const data = join(scratch, "document");
  const command = [process.execPath, "--no-env-file", join(root, "src/main.ts"), "serve"];
  const settings = {
    SLIPWAY_DATA_DIR: data,
    SLIPWAY_ADDRESS: "127.0.0.1:0",
    SLIPWAY_DOCKER_HOST: "unix:///nowhere/docker.sock",
  };
  const child = Bun.spawn(command, {
    env: Object.assign({ PATH: env.PATH, HOME: scratch, TEST_RUN_MARK: env.TEST_RUN_MARK }, settings),
    stdio: ["ignore", "pipe", "pipe"],
  });
  const errors = child.stderr.text();
  try {
    const url = await readAddress(child.stdout);
    if (url === undefined) throw new Error(`The server for the OpenAPI document did not start:\n${await errors}`);
    return (await (await fetch(new URL("/swagger/json", url))).json()) as OpenApi;
  } finally {
    child.kill("SIGTERM");
    await child.exited;
    rmSync(data, { recursive: true, force: true });
  }
};

const readAddress = async (output: ReadableStream<Uint8Array>): Promise<string | undefined> => {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of output) {
    text += decoder.decode(chunk, { stream: true });
    const [, url] = / is listening on (\S+)/.exec(text) ?? [];
    if (url !== undefined) return url;
  }
  return undefined;
};

/**
 * Returns the operations that are requests or event streams. WebSockets are omitted: the standard library of Python does
 * not support them.
 */
export const listOperations = ({ paths }: OpenApi): Operation[] =>
  Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item)
      .filter(([, operation]) => !isWebSocket(operation))
      .map(([method, operation]) => toOperation(method, path, operation)),
  );

const isWebSocket = ({ responses }: OperationDescription): boolean =>
  Object.values(responses).every(
    ({ description = "", content }, i) => i > 0 || (content === undefined && description.includes("WebSocket")),
  );

const toOperation = (method: string, path: string, operation: OperationDescription): Operation => {
  const { operationId, summary, description = "", parameters = [], requestBody, responses } = operation;
  const [success] = Object.entries(responses).filter(([status]) => status.startsWith("2"));
  const answer = getFirstContent(success?.[1].content);
  const body = getFirstContent(requestBody?.content);
  return {
    name: operationId,
    summary,
    description,
    method: method.toUpperCase(),
    path,
    parameters: parameters.filter(({ name }) => name !== IDEMPOTENCY_KEY_HEADER),
    body: body && { ...body, isRequired: requestBody?.required === true },
    answer,
    sends: answer?.type === EVENT_STREAM_TYPE ? operation["x-sends"] : undefined,
    hasKey: parameters.some(({ name }) => name === IDEMPOTENCY_KEY_HEADER),
  };
};

const getFirstContent = (content: Content | undefined): { type: string; schema: Schema } | undefined => {
  const [entry] = Object.entries(content ?? {});
  return entry && { type: entry[0], schema: entry[1].schema };
};

/** Returns the name of the schema that a schema refers to. */
export const getReference = ({ $ref, allOf }: Schema): string | undefined => {
  const ref = $ref ?? (allOf?.length === 1 ? allOf[0]?.$ref : undefined);
  return ref?.replace("#/components/schemas/", "");
};
