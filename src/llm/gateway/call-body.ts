// What the gateway reads in the body of a model call, and the little it changes: the model's name where an administrator has mapped it, and
// that a stream of chat completions tells its usage. Everything else goes to the provider byte by byte. Pure.
import type { Endpoint } from "./endpoint.ts";

export type CallBody = {
  /** The model that the caller asks for. */
  readonly model: string;
  readonly streams: boolean;
  /** Whether the usage of a stream was asked for by the gateway, so that the caller must not see it. */
  readonly hidesUsage: boolean;
  /** Tokens that the prompt has about, and that the answer may have; undefined: the caller sets no limit. */
  readonly prompt_tokens: number;
  readonly max_output_tokens: number | undefined;
  /** Returns the bytes for the provider, with this model. */
  bytesFor(model: string): Uint8Array;
  /** The same, without asking for the usage of a stream. */
  bytesWithoutUsage(model: string): Uint8Array;
};

/** Why a body cannot be forwarded, in words for the caller. */
export class CallBodyError extends Error {
  override readonly name = "CallBodyError";
}

/** Bytes of a prompt for each token, about: English text has four, code and other scripts fewer. */
const BYTES_PER_TOKEN = 3;

type Json = Readonly<Record<string, unknown>>;

/** Reads the body of a call. Throws CallBodyError. */
export const readCallBody = (endpoint: Endpoint, bytes: Uint8Array): CallBody => {
  const json = parse(bytes);
  const model = endpoint.model ?? json.model;
  if (typeof model !== "string" || model === "") throw new CallBodyError("The request names no model.");
  if (json.background === true) {
    throw new CallBodyError("Background responses cannot be used through this gateway. Leave out `background`.");
  }
  const streams = endpoint.streams ?? json.stream === true;
  const options = json.stream_options as Json | null | undefined;
  const asks = endpoint.usage === "openai_chat" && streams && options?.include_usage !== true;
  const added = asks ? { stream_options: { ...options, include_usage: true } } : {};
  const bytesWith = (name: string, more: Json): Uint8Array => {
    const isSame = endpoint.model !== undefined || name === model;
    if (isSame && Object.keys(more).length === 0) return bytes;
    return new TextEncoder().encode(JSON.stringify({ ...json, ...(isSame ? {} : { model: name }), ...more }));
  };
  return {
    model,
    streams,
    hidesUsage: asks,
    prompt_tokens: Math.ceil(bytes.length / BYTES_PER_TOKEN),
    max_output_tokens: maxOutput(json),
    bytesFor: (name) => bytesWith(name, added),
    bytesWithoutUsage: (name) => bytesWith(name, {}),
  };
};

const parse = (bytes: Uint8Array): Json => {
  try {
    const json: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    if (typeof json === "object" && json !== null && !Array.isArray(json)) return json as Json;
  } catch {
    // Said below.
  }
  throw new CallBodyError("The body of the request is not a JSON object.");
};

const maxOutput = (json: Json): number | undefined => {
  const google = (json.generationConfig ?? json.generation_config) as Json | undefined;
  const given = [json.max_tokens, json.max_completion_tokens, json.max_output_tokens, google?.maxOutputTokens];
  const limits = given.filter((one): one is number => typeof one === "number" && one > 0);
  return limits.length > 0 ? Math.max(...limits) : undefined;
};
