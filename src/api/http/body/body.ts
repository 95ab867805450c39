// Reading request bodies: JSON only, an object, and never more than the route's limit, also when the client does not say how much
// it will send. A body is read only after its sender is known (rules HT-5 to HT-7, HT-24).

import { AppError } from "#base/errors.ts";
import { CHEAP_BYTES, findCostProblem } from "#base/json/cost.ts";
import { PieceCounter } from "#base/network/body-pieces.ts";
import { shareOfMemory } from "#base/system/memory.ts";
import { findSenderId, refreshIdentity, requireKnownCaller } from "../caller.ts";
import { getPath } from "../errors.ts";
import type { OperationOptions } from "../operation.ts";
import { ByteBudget, TOO_MANY_BODIES } from "./budget.ts";
import { refuseNul } from "./nul.ts";

// Handles objects in a body that have a member called `toString`. The validator puts the value into its message, which throws for these
// objects, and the caller would not learn what is wrong.

/** A letter of `toString` written as an escape. Common escapes, such as those of colors in a log, do not match. */
const ESCAPED_LETTER = /\\u00(?:53|6[79ef]|7[24])/i;

const TO_TEXT = { value: () => "[object Object]" };

/** Makes every object in `value` convertible to text without a visible change. `text`: the JSON it was parsed from. */
const makePrintable = (text: string, value: unknown): void => {
  if (!text.includes("toString") && !(text.includes("\\u00") && ESCAPED_LETTER.test(text))) return;
  const pending: unknown[] = [value];
  // Iterative, because a sender can nest a body arbitrarily deep.
  for (let current = pending.pop(); current !== undefined; current = pending.pop()) {
    if (typeof current !== "object" || current === null) continue;
    if (Object.hasOwn(current, "toString")) Object.defineProperty(current, Symbol.toPrimitive, TO_TEXT);
    for (const member of Object.values(current))
      if (typeof member === "object" && member !== null) pending.push(member);
  }
};

/** The default of the specification. */
const MAX_BODY_BYTES = 4_194_304;
/** For the few routes open to anonymous callers. */
const MAX_PUBLIC_BODY_BYTES = 65_536;
/** Uploads to `POST /api/v2/files`. */
export const MAX_UPLOAD_BYTES = 104_857_600;

/** Returns the error 413 with the message that the specification fixes. */
export const tooLarge = (limit: number): AppError =>
  new AppError("too_large", "Request body too large.", { detail: `Maximum request body size is ${limit} bytes.` });

/** The error 400 for a body in thousands of chunks of a few bytes. */
export const makeTooManyChunksError = (): AppError =>
  new AppError("invalid", "The request body comes in too many small chunks.", {
    detail: "Send it with the header Content-Length, or in larger chunks.",
  });

const MIB = 1024 * 1024;
/** Parsing a body takes several times its size. One sender has room for the largest body of any route. */
const bodies = new ByteBudget(
  Math.max(64 * MIB, Math.min(512 * MIB, shareOfMemory(1 / 8))),
  Math.max(32 * MIB, Math.min(128 * MIB, shareOfMemory(1 / 32))),
  TOO_MANY_BODIES,
);
const ANONYMOUS = "anonymous";

/** Like `readBytes`, and rejects with 503 while too many bodies of the sender, or of all senders, are being read. */
export const readCountedBytes = async (request: Request, limit: number): Promise<Uint8Array<ArrayBuffer>> => {
  const reservation = bodies.open(findSenderId(request) ?? ANONYMOUS);
  try {
    return await readBytes(request, limit, (bytes) => reservation.add(bytes));
  } finally {
    reservation.release();
  }
};

/** Returns the body's bytes. Rejects with 413 as soon as more than `limit` have arrived. `count` is called before bytes are kept. */
export const readBytes = async (
  request: Request,
  limit: number,
  count: (bytes: number) => void = () => {},
): Promise<Uint8Array<ArrayBuffer>> => {
  const encoding = request.headers.get("content-encoding");
  if (encoding !== null && encoding !== "identity") {
    throw new AppError("unsupported_media", "Compressed request bodies are not supported.", {
      detail: "Send it without Content-Encoding.",
    });
  }
  const declared = Number(request.headers.get("content-length") ?? Number.NaN);
  if (declared > limit) throw tooLarge(limit);
  if (!(declared >= 0)) return readChunks(request, limit, count);
  if (declared > MIN_BODY_LIMIT) count(declared);
  // Bun never returns more than was declared.
  return new Uint8Array(await request.arrayBuffer());
};

const readChunks = async (
  request: Request,
  limit: number,
  count: (bytes: number) => void,
): Promise<Uint8Array<ArrayBuffer>> => {
  const chunks: Uint8Array[] = [];
  const pieces = new PieceCounter();
  let size = 0;
  for await (const chunk of request.body ?? []) {
    size += chunk.byteLength;
    if (pieces.add(chunk)) throw makeTooManyChunksError();
    if (size > limit) throw tooLarge(limit);
    count(chunk.byteLength);
    chunks.push(chunk);
  }
  return new Uint8Array(Bun.concatArrayBuffers(chunks));
};

const isJson = (contentType: string): boolean => /^application\/(?:[\w.-]+\+)?json\b/i.test(contentType);

/**
 * What `readBody` returns for a request without a body, whatever its content type: many clients send one with every request (rule HT-24).
 */
export const NO_BODY = null;

/** Returns the error 400 for a request without a body on a route that needs one. */
export const makeMissingBodyError = (): AppError =>
  new AppError("invalid", "The request body is missing.", {
    detail: "This route needs a JSON object, sent with the header Content-Type: application/json.",
  });

/** Returns a JSON object, or NO_BODY. Rejects with 415 for other content types and with 400 for invalid JSON. */
const readJson = async (request: Request, limit: number): Promise<object | typeof NO_BODY> => {
  const contentType = request.headers.get("content-type") ?? "";
  const declared = request.headers.get("content-length");
  if (declared === "0" || (declared === null && request.body === null)) return NO_BODY;
  if (!isJson(contentType)) {
    throw new AppError("unsupported_media", "The request body must be JSON.", {
      detail: "Send it with the header Content-Type: application/json.",
    });
  }
  const value = isSmall(request, limit)
    ? parseBody(request, await request.arrayBuffer())
    : await parseUntrusted(request, limit);
  if (value === undefined) return NO_BODY;
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new AppError("invalid", "The request body must be a JSON object.");
  }
  return value;
};

/** Returns whether a body is short, of known length and uncompressed; it is then read immediately and cannot be costly to parse. */
const isSmall = ({ headers }: Request, limit: number): boolean => {
  const declared = headers.get("content-length");
  return declared !== null && Number(declared) <= Math.min(limit, CHEAP_BYTES - 1) && !headers.has("content-encoding");
};

const utf8 = new TextDecoder("utf-8", { fatal: true });

const parseUntrusted = async (request: Request, limit: number): Promise<unknown> => {
  const bytes = await readCountedBytes(request, limit);
  // The stream ended without any data.
  if (bytes.byteLength === 0) return undefined;
  const costProblem = findCostProblem(bytes);
  if (costProblem) throw new AppError("invalid", `The request body ${costProblem}`);
  return parseBody(request, bytes);
};

/** Parses JSON and rejects invalid UTF-8, in which Bun would replace characters. */
const parseBody = (request: Request, bytes: ArrayBuffer | Uint8Array): unknown => {
  const { text, value } = parseJson(bytes);
  makePrintable(text, value);
  if (!isAgentRoute(request)) refuseNul(text, value);
  return value;
};

const parseJson = (bytes: ArrayBuffer | Uint8Array): { text: string; value: unknown } => {
  try {
    const text = utf8.decode(bytes);
    return { text, value: JSON.parse(text) };
  } catch (error) {
    const detail = error instanceof Error ? error.message.slice(0, 200) : "";
    throw new AppError("invalid", "The request body must be valid JSON.", { detail });
  }
};

/** These routes carry program output and clean it themselves (rule LG-2). */
const isAgentRoute = ({ url }: Request): boolean => getPath(url).startsWith("/api/v2/workspaceagents/me/");

/** Returns the maximum body size for an operation; undefined means there is no such operation. */
export const getBodyLimit = (declared: OperationOptions | undefined): number =>
  declared?.limit ?? (declared?.reads === "public" ? MAX_PUBLIC_BODY_BYTES : MAX_BODY_BYTES);

/** No operation has a lower limit, so shorter bodies need no check. */
export const MIN_BODY_LIMIT = 65_536;

/**
 * Reads a request's body as its operation declares: as JSON from known callers, as JSON from anyone, or left to the handler. After a slow
 * body, the caller is identified again.
 */
export const readBody = async (request: Request, declared: OperationOptions | undefined): Promise<unknown> => {
  // Not undefined, because Elysia would then parse JSON and forms itself.
  if (declared?.reads === "stream") return NO_BODY;
  if (declared?.reads !== "public") requireKnownCaller(request);
  const body = await readJson(request, getBodyLimit(declared));
  await refreshIdentity(request);
  if (declared?.reads !== "public") requireKnownCaller(request);
  if (body === NO_BODY && declared?.reads === "public") throw makeMissingBodyError();
  return body;
};
