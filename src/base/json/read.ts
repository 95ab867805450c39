// Parses JSON from outside: answers of services, messages of workers and agents, input of users. The bytes are limited while they are
// read, and the values are counted before they are parsed (rule HT-48). `JSON.parse` is only for text that this server has written itself.
export type { JsonLimits } from "./cost.ts";

import { CHEAP_BYTES, findCostProblem, type JsonLimits } from "./cost.ts";

/** The text is not JSON, or too large. The message is the end of "The answer ...", such as "is not JSON.". */
export class JsonProblem extends Error {
  override readonly name = "JsonProblem";
  readonly isTooLarge: boolean;

  constructor(message: string, isTooLarge: boolean, cause?: unknown) {
    super(message, { cause });
    this.isTooLarge = isTooLarge;
  }
}

/** Returns the value of a text. Throws `JsonProblem`. */
export const parseJson = (text: string | Uint8Array, limits?: JsonLimits): unknown => {
  const problem =
    typeof text === "string"
      ? text.length < CHEAP_BYTES
        ? undefined
        : findCostProblem(new TextEncoder().encode(text), limits)
      : findCostProblem(text, limits);
  if (problem !== undefined) throw new JsonProblem(problem, true);
  try {
    return JSON.parse(typeof text === "string" ? text : new TextDecoder().decode(text));
  } catch (error) {
    throw new JsonProblem("is not JSON.", false, error);
  }
};

/** Returns the value of a text; undefined if it is not JSON, or too large. */
export const tryParseJson = (text: string | Uint8Array, limits?: JsonLimits): unknown => {
  try {
    return parseJson(text, limits);
  } catch {
    return undefined;
  }
};

type Body = { readonly body: ReadableStream<Uint8Array> | null };

/** Returns the bytes of a body. Throws `JsonProblem` and cancels the body as soon as there are more than `maxBytes`. */
export const readBytes = async ({ body }: Body, maxBytes: number): Promise<Uint8Array<ArrayBuffer>> => {
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of body ?? []) {
    size += piece.byteLength;
    if (size > maxBytes) throw new JsonProblem(`is larger than ${maxBytes} bytes.`, true);
    pieces.push(piece);
  }
  const all = new Uint8Array(size);
  let offset = 0;
  for (const piece of pieces) {
    all.set(piece, offset);
    offset += piece.byteLength;
  }
  return all;
};

/** Returns the first bytes of a body as text, and cancels the body. For error messages. */
export const readStart = async ({ body }: Body, maxBytes: number): Promise<string> => {
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of body ?? []) {
    size += piece.byteLength;
    pieces.push(piece);
    if (size >= maxBytes) break;
  }
  return new TextDecoder().decode(Buffer.concat(pieces).subarray(0, maxBytes));
};

/** Returns the value of a body. Throws `JsonProblem`. */
export const readJson = async (
  body: Body,
  { maxBytes, ...limits }: JsonLimits & { readonly maxBytes: number },
): Promise<unknown> => parseJson(await readBytes(body, maxBytes), limits);
