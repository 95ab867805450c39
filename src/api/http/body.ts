// Reading request bodies: JSON only, an object, and never more than the route's limit, also when the client does not say how much
// it will send. A body is read only after its sender is known (rules HT-5 to HT-7, HT-24).
import { AppError } from "#base/errors.ts";
import { mustBeKnown } from "./caller.ts";
import { pathOf } from "./errors.ts";
import { CHEAP_BYTES, tooCostly } from "./json-cost.ts";

/** The default of the specification. */
const DEFAULT_LIMIT = 4_194_304;
/** For the few routes that strangers may call. */
const PUBLIC_LIMIT = 65_536;
/** Uploads to `POST /api/v2/files`. */
export const UPLOAD_LIMIT = 104_857_600;

/** 413 with the words the specification fixes. */
export const tooLarge = (limit: number): AppError =>
  new AppError("too_large", "Request body too large.", { detail: `Maximum request body size is ${limit} bytes.` });

/** The body's bytes. 413 as soon as more than `limit` have come in. */
const readBytes = async (request: Request, limit: number): Promise<Uint8Array<ArrayBuffer>> => {
  const encoding = request.headers.get("content-encoding");
  if (encoding !== null && encoding !== "identity") {
    throw new AppError("unsupported_media", "Compressed request bodies are not supported.", {
      detail: "Send it without Content-Encoding.",
    });
  }
  const declared = Number(request.headers.get("content-length") ?? Number.NaN);
  if (declared > limit) throw tooLarge(limit);
  // With a length Bun never hands out more than was declared.
  if (declared >= 0) return new Uint8Array(await request.arrayBuffer());
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request.body ?? []) {
    size += chunk.byteLength;
    if (size > limit) throw tooLarge(limit);
    chunks.push(chunk);
  }
  return new Uint8Array(Bun.concatArrayBuffers(chunks));
};

const isJson = (contentType: string): boolean => /^application\/(?:[\w.-]+\+)?json\b/i.test(contentType);

/** What `parseJson` gives for a request without a body, whatever type it names: many clients name one with every request (rule HT-24). */
export const NO_BODY = null;

/** 400 for a route that needs a body and got none. */
export const bodyMissing = (): AppError =>
  new AppError("invalid", "The request body is missing.", {
    detail: "This route needs a JSON object, sent with the header Content-Type: application/json.",
  });

/** A JSON object, or NO_BODY. 415 for other content, 400 for what is not JSON. */
const readJson = async (request: Request, limit: number): Promise<object | typeof NO_BODY> => {
  const contentType = request.headers.get("content-type") ?? "";
  const declared = request.headers.get("content-length");
  if (declared === "0" || (declared === null && request.body === null)) return NO_BODY;
  if (!isJson(contentType)) {
    throw new AppError("unsupported_media", "The request body must be JSON.", {
      detail: "Send it with the header Content-Type: application/json.",
    });
  }
  const value = isSmall(request, limit) ? parsed(await request.arrayBuffer()) : await parsedWithCare(request, limit);
  if (value === undefined) return NO_BODY;
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new AppError("invalid", "The request body must be a JSON object.");
  }
  return value;
};

/** Short, of known length and not compressed: read at once, and nothing in it can be costly. */
const isSmall = ({ headers }: Request, limit: number): boolean => {
  const declared = headers.get("content-length");
  return declared !== null && Number(declared) <= Math.min(limit, CHEAP_BYTES - 1) && !headers.has("content-encoding");
};

const utf8 = new TextDecoder("utf-8", { fatal: true });

const parsedWithCare = async (request: Request, limit: number): Promise<unknown> => {
  const bytes = await readBytes(request, limit);
  // A stream that ended before it began.
  if (bytes.byteLength === 0) return undefined;
  const costly = tooCostly(bytes);
  if (costly) throw new AppError("invalid", `The request body ${costly}`);
  return parsed(bytes);
};

/** Bytes that are no UTF-8 are refused: Bun's own reading would put other characters in their place. */
const parsed = (bytes: ArrayBuffer | Uint8Array): unknown => {
  try {
    return JSON.parse(utf8.decode(bytes));
  } catch (error) {
    const detail = error instanceof Error ? error.message.slice(0, 200) : "";
    throw new AppError("invalid", "The request body must be valid JSON.", { detail });
  }
};

type Parsing = { request: Request };

type Parser = (parsing: Parsing) => Promise<unknown>;

const ownParsers = new Set<string>();

/** Whether the routes of this path read their bodies by a parser of their own. */
export const hasOwnParser = (path: string): boolean => ownParsers.has(path);
const limitOf = new WeakMap<Parser, number>();
/** Paths whose bodies may be larger or smaller than usual. */
const limits = new Map<string, number>();

/** For the `parse` option of a route: Elysia runs the parser of every route first, so it has to know which paths to leave alone. */
export const ownParser = (path: string, parser: Parser): Parser => {
  ownParsers.add(path);
  limits.set(path, limitOf.get(parser) ?? DEFAULT_LIMIT);
  return parser;
};

/** The same for paths with names in them. */
const patterns = new Map<number, { segments: readonly (string | undefined)[]; limit: number }[]>();

/** JSON sent to this path may have at most `limit` bytes; `{name}` stands for any one segment. */
export const limitJson = (path: string, limit: number): void => {
  const segments = path.split("/").map((segment) => (segment.startsWith("{") ? undefined : segment));
  const alike = patterns.get(segments.length) ?? [];
  patterns.set(segments.length, [...alike, { segments, limit }]);
};

/** The most bytes that a body sent to this path may have. */
export const bodyLimit = (path: string): number => limits.get(path) ?? limitOfPattern(path.split("/")) ?? DEFAULT_LIMIT;

// Compared segment by segment: a burst of requests would pay for some dozens of regular expressions each.
const limitOfPattern = (path: readonly string[]): number | undefined =>
  patterns
    .get(path.length)
    ?.find(({ segments }) =>
      segments.every((segment, i) => (segment === undefined ? path[i] !== "" : segment === path[i])),
    )?.limit;

/** The parser of every route that does not name its own (undefined for those that do): a signed-in caller, JSON, the default limit. */
export const parseJson = async ({ request }: Parsing): Promise<unknown> => {
  if (ownParsers.has(pathOf(request.url))) return undefined;
  mustBeKnown(request);
  return readJson(request, bodyLimit(pathOf(request.url)));
};

/** For the few routes that strangers may call; all of them need a body. */
export const parsePublicJson: Parser = async ({ request }) => {
  const body = await readJson(request, PUBLIC_LIMIT);
  if (body === NO_BODY) throw bodyMissing();
  return body;
};
limitOf.set(parsePublicJson, PUBLIC_LIMIT);

/** For handlers that read the body themselves, as a stream; they keep to the limit. */
export const leaveUnread = (limit: number): Parser => {
  // Not undefined: Elysia would go on and parse JSON and forms by itself.
  const parser: Parser = async () => null;
  limitOf.set(parser, limit);
  return parser;
};
