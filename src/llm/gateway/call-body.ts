// What the gateway reads in the body of a model call, and the little it changes: the model's name where an administrator has mapped it, and
// that a stream of chat completions tells its usage. Everything else goes to the provider byte by byte. Pure.
import type { Endpoint } from "./endpoint.ts";
import { isObject, type Json, objectsIn } from "./json.ts";
import {
  findMemberTwice,
  findMisspelledName,
  findOtherModel,
  findRepeatedName,
  findWrongType,
  hasTooManyValues,
} from "./one-reading.ts";
import { findStored } from "./stored.ts";

export type CallBody = {
  /** The model that the caller asks for. */
  readonly model: string;
  readonly streams: boolean;
  /** Whether the usage of a stream was asked for by the gateway, so that the caller must not see it. */
  readonly hidesUsage: boolean;
  /** Tokens that the prompt has, about. */
  readonly prompt_tokens: number;
  /** Tokens that one answer may have; undefined: the caller sets no limit that could be meant. */
  readonly max_output_tokens: number | undefined;
  /** Answers that are asked for to the same prompt. */
  readonly answers: number;
  /** As the caller has sent it. */
  readonly bytes: Uint8Array;
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
/** Tokens of an image, about, however many bytes it has. */
const IMAGE_TOKENS = 1_600;
/** Tokens of what the provider fetches from an address, about: a document of a hundred pages, and twenty minutes of video or sound. */
const DOCUMENT_TOKENS = 100_000;
const RECORDING_TOKENS = 300_000;
/** No model takes more. Without a bound one caller could reserve the whole of a budget that others share. */
const MAX_PROMPT_TOKENS = 2_097_152;
const MAX_OUTPUT_TOKENS = 131_072;
/** No provider gives more answers to one call. */
const MAX_ANSWERS = 128;

/** Reads the body of a call. Throws CallBodyError. */
export const readCallBody = (endpoint: Endpoint, bytes: Uint8Array): CallBody => {
  const json = parse(bytes);
  refuseSecondReading(endpoint, json);
  const model = endpoint.model ?? json.model;
  if (typeof model !== "string" || model === "") throw new CallBodyError("The request names no model.");
  if (json.background === true) {
    throw new CallBodyError("Background responses cannot be used through this gateway. Leave out `background`.");
  }
  const stored = findStored(endpoint.dialect, json);
  if (stored !== undefined) {
    const why =
      "What a provider stores is reachable for everyone who shares its key, so this gateway refuses references.";
    throw new CallBodyError(`${why} Leave out \`${stored}\` and send the content itself.`);
  }
  const streams = endpoint.streams ?? json.stream === true;
  const options = json.stream_options as Json | null | undefined;
  const asks = endpoint.usage === "openai_chat" && streams && options?.include_usage !== true;
  const added = asks ? { stream_options: { ...options, include_usage: true } } : {};
  const bytesWith = (name: string, more: Json): Uint8Array => {
    const inPath = endpoint.model !== undefined;
    // Gemini's body may repeat the model of the path.
    const isSame = name === model || (inPath && typeof json.model !== "string");
    if (isSame && Object.keys(more).length === 0) return bytes;
    const named = isSame ? {} : { model: inPath ? `models/${name}` : name };
    return new TextEncoder().encode(JSON.stringify({ ...json, ...named, ...more }));
  };
  return {
    model,
    streams,
    hidesUsage: asks,
    prompt_tokens: promptTokens(json, bytes.length),
    max_output_tokens: maxOutput(json),
    answers: answersOf(json),
    bytes,
    bytesFor: (name) => bytesWith(name, added),
    bytesWithoutUsage: (name) => bytesWith(name, {}),
  };
};

const parse = (bytes: Uint8Array): Json => {
  let text = "";
  let json: unknown;
  let tooMany = false;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    if (!hasTooManyValues(text)) json = JSON.parse(text);
    else tooMany = true;
  } catch {
    // Said below.
  }
  if (tooMany) throw new CallBodyError("The body of the request has too many values.");
  if (!isObject(json)) throw new CallBodyError("The body of the request is not a JSON object.");
  const repeated = findRepeatedName(text);
  if (repeated !== undefined)
    throw new CallBodyError(`The body of the request has ${shown(repeated)} twice in one object.`);
  return json;
};

/** The bytes pass as they are, so they must not mean something else to the provider than they do here. */
const refuseSecondReading = ({ dialect, model }: Endpoint, json: Json): void => {
  const misspelled = findMisspelledName(dialect, json);
  if (misspelled) {
    const [written, meant] = misspelled;
    throw new CallBodyError(`The body of the request has a member ${shown(written)}. Write \`${meant}\`.`);
  }
  const wrong = findWrongType(json);
  if (wrong !== undefined) throw new CallBodyError(wrong);
  if (dialect !== "google") return;
  const twice = findMemberTwice(json);
  if (twice) {
    const names = twice.map(shown).join(" and ");
    throw new CallBodyError(`The body of the request has ${names} in one object, which mean the same. Leave out one.`);
  }
  const other = model === undefined ? undefined : findOtherModel(json, model);
  if (other !== undefined) {
    throw new CallBodyError(`The body of the request names the model ${shown(other)} and its path another one.`);
  }
};

const shown = (name: string): string => `\`${name.slice(0, 100)}\``;

const generationConfig = (json: Json): Json | null | undefined =>
  (json.generationConfig ?? json.generation_config) as Json | null | undefined;

const maxOutput = (json: Json): number | undefined => {
  const google = generationConfig(json);
  const given = [
    json.max_tokens,
    json.max_completion_tokens,
    json.max_output_tokens,
    google?.maxOutputTokens ?? google?.max_output_tokens,
  ];
  const limits = given.filter((one): one is number => typeof one === "number" && one > 0);
  return limits.length > 0 ? Math.min(Math.ceil(Math.max(...limits)), MAX_OUTPUT_TOKENS) : undefined;
};

const answersOf = (json: Json): number => {
  const google = generationConfig(json);
  const given = json.n ?? google?.candidateCount ?? google?.candidate_count;
  return typeof given === "number" && given >= 1 ? Math.min(Math.ceil(given), MAX_ANSWERS) : 1;
};

/** Text counts by its bytes. Images, and what stands at an address, count each: their bytes say nothing of their tokens. */
const promptTokens = (json: Json, size: number): number => {
  let images = 0;
  let imageBytes = 0;
  let fetched = 0;
  for (const part of objectsIn(json)) {
    const data = imageIn(part);
    if (data === undefined) {
      fetched += fetchedTokens(part);
      continue;
    }
    images += 1;
    imageBytes += data.length;
  }
  const text = Math.max(0, size - imageBytes) / BYTES_PER_TOKEN;
  return Math.min(Math.ceil(text) + images * IMAGE_TOKENS + fetched, MAX_PROMPT_TOKENS);
};

/** Returns what a part counts that names an address of something other than an image; 0: it names none. */
const fetchedTokens = (part: Json): number => {
  const google = firstObject(part.fileData, part.file_data);
  if (google && textOf(google.fileUri ?? google.file_uri) !== "") {
    return /^(?:application|text)\//.test(textOf(google.mimeType ?? google.mime_type))
      ? DOCUMENT_TOKENS
      : RECORDING_TOKENS;
  }
  const isOfAnthropic = part.type === "document" && isObject(part.source) && textOf(part.source.url) !== "";
  return isOfAnthropic || textOf(part.file_url) !== "" ? DOCUMENT_TOKENS : 0;
};

/** Returns the data or the address of the image that a part is; undefined: it is none. */
const imageIn = (part: Json): string | undefined => {
  if (part.type === "image_url" || part.type === "input_image") {
    const { image_url } = part;
    return textOf(isObject(image_url) ? image_url.url : image_url);
  }
  if (part.type === "image" && isObject(part.source)) return textOf(part.source.data ?? part.source.url);
  const google = firstObject(part.inlineData, part.inline_data) ?? firstObject(part.fileData, part.file_data);
  if (google && textOf(google.mimeType ?? google.mime_type).startsWith("image/")) {
    return textOf(google.data ?? google.fileUri ?? google.file_uri);
  }
  return undefined;
};

/** Without a list of both: it is asked of each object of a body. */
const firstObject = (one: unknown, other: unknown): Json | undefined => {
  if (isObject(one)) return one;
  return isObject(other) ? other : undefined;
};

const textOf = (value: unknown): string => (typeof value === "string" ? value : "");
