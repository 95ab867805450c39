// Reads the body of a gateway call and makes two changes: the model's name, if an administrator has mapped it, and a request for the usage
// of chat-completions streams. Everything else is forwarded byte for byte. Pure.
import { PROVIDER_KINDS, type ProviderKind } from "#schema/chats/model-provider.ts";
import { findDearer } from "./costly-members.ts";
import type { Endpoint } from "./endpoint.ts";
import { isObject, type Json, listObjects } from "./json.ts";
import { findStored } from "./stored.ts";
import {
  findMemberTwice,
  findMisspelledName,
  findOtherModel,
  findRepeatedName,
  findWrongType,
  hasTooManyValues,
} from "./unambiguous-body.ts";

export type CallBody = {
  /** The requested model. */
  readonly model: string;
  readonly streams: boolean;
  /** The gateway, not the caller, requested the usage of the stream, so it is hidden from the caller. */
  readonly hidesUsage: boolean;
  /** Estimated number of prompt tokens. */
  readonly prompt_tokens: number;
  /** Returns the maximum number of output tokens at this kind of provider; undefined if the caller sets no limit that it heeds. */
  getMaxOutputTokens(kind: ProviderKind): number | undefined;
  /** Number of answers requested for the prompt. */
  readonly answers: number;
  /** Returns the body for the provider, with this model. */
  bytesFor(model: string): Uint8Array;
  /** Returns the body without the request for a stream's usage. */
  bytesWithoutUsage(model: string): Uint8Array;
  /** Drops the content once the provider has it: an answer may be read for hours. The body cannot be sent again afterwards. */
  dropContent(): void;
};

/** Explains to the caller why a body cannot be forwarded. */
export class CallBodyError extends Error {
  override readonly name = "CallBodyError";
}

/** Estimated prompt bytes per token: English text has four, code and other scripts fewer. */
const BYTES_PER_TOKEN = 3;
/** Estimated tokens of an image, regardless of its size in bytes. */
const IMAGE_TOKENS = 1_600;
/**
 * Estimated tokens of content that the provider fetches or unpacks: a document of a hundred pages, what a search or a fetch returns, or twenty
 * minutes of video or audio.
 */
const DOCUMENT_TOKENS = 100_000;
const RECORDING_TOKENS = 300_000;
/** No model accepts more. Without a limit, one caller could reserve the whole of a shared budget. */
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
  const dearer = findDearer(json);
  if (dearer !== undefined) throw new CallBodyError(dearer);
  const stored = findStored(endpoint.dialect, json);
  if (stored !== undefined) {
    const reason =
      "What a provider stores is reachable for everyone who shares its key, so this gateway refuses references.";
    throw new CallBodyError(`${reason} Leave out \`${stored}\` and send the content itself.`);
  }
  const streams = endpoint.streams ?? json.stream === true;
  const options = json.stream_options as Json | null | undefined;
  const asks = endpoint.usage === "openai_chat" && streams && options?.include_usage !== true;
  const added = asks ? { stream_options: { ...options, include_usage: true } } : {};
  let content: { readonly json: Json; readonly bytes: Uint8Array } | undefined = { json, bytes };
  const encodeWith = (name: string, more: Json): Uint8Array => {
    if (content === undefined) throw new Error("the content of the call was dropped");
    const inPath = endpoint.model !== undefined;
    // Gemini's body may repeat the model of the path.
    const isSame = name === model || (inPath && typeof content.json.model !== "string");
    if (isSame && Object.keys(more).length === 0) return content.bytes;
    const named = isSame ? {} : { model: inPath ? `models/${name}` : name };
    return new TextEncoder().encode(JSON.stringify({ ...content.json, ...named, ...more }));
  };
  const maxOutputs = computeMaxOutputs(endpoint, json);
  return {
    model,
    streams,
    hidesUsage: asks,
    prompt_tokens: estimatePromptTokens(endpoint, json, bytes.length),
    getMaxOutputTokens: (kind) => maxOutputs.get(kind),
    answers: countAnswers(endpoint, json),
    bytesFor: (name) => encodeWith(name, added),
    bytesWithoutUsage: (name) => encodeWith(name, {}),
    dropContent: () => {
      content = undefined;
    },
  };
};

const computeMaxOutputs = (endpoint: Endpoint, json: Json): ReadonlyMap<ProviderKind, number | undefined> =>
  new Map(PROVIDER_KINDS.map((kind) => [kind, getMaxOutput(listLimits(endpoint, json, kind))]));

const parse = (bytes: Uint8Array): Json => {
  let text = "";
  let json: unknown;
  let tooMany = false;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    if (!hasTooManyValues(text)) json = JSON.parse(text);
    else tooMany = true;
  } catch {
    // Reported below.
  }
  if (tooMany) throw new CallBodyError("The body of the request has too many values.");
  if (!isObject(json)) throw new CallBodyError("The body of the request is not a JSON object.");
  const repeated = findRepeatedName(text);
  if (repeated !== undefined)
    throw new CallBodyError(`The body of the request has ${quoteName(repeated)} twice in one object.`);
  return json;
};

/** The bytes are forwarded unchanged, so the provider must not read them differently. */
const refuseSecondReading = ({ dialect, model }: Endpoint, json: Json): void => {
  const misspelled = findMisspelledName(dialect, json);
  if (misspelled) {
    const [written, meant] = misspelled;
    throw new CallBodyError(`The body of the request has a member ${quoteName(written)}. Write \`${meant}\`.`);
  }
  const wrong = findWrongType(json);
  if (wrong !== undefined) throw new CallBodyError(wrong);
  if (dialect !== "google") return;
  const duplicate = findMemberTwice(json);
  if (duplicate) {
    const names = duplicate.map(quoteName).join(" and ");
    throw new CallBodyError(`The body of the request has ${names} in one object, which mean the same. Leave out one.`);
  }
  const other = model === undefined ? undefined : findOtherModel(json, model);
  if (other !== undefined) {
    throw new CallBodyError(`The body of the request names the model ${quoteName(other)} and its path another one.`);
  }
};

const quoteName = (name: string): string => `\`${name.slice(0, 100)}\``;

const getGenerationConfig = (json: Json): Json | null | undefined =>
  (json.generationConfig ?? json.generation_config) as Json | null | undefined;

/** Returns the limits that the provider heeds: it ignores members of other APIs. */
const listLimits = ({ usage }: Endpoint, json: Json, kind: ProviderKind): unknown[] => {
  if (usage === "anthropic") return [json.max_tokens];
  if (usage === "openai_responses") return [json.max_output_tokens];
  if (usage === "google") {
    const google = getGenerationConfig(json);
    return [google?.maxOutputTokens ?? google?.max_output_tokens];
  }
  // Some servers with OpenAI's API know only the older member, and take -1 for no limit.
  const { max_tokens } = json;
  const isAlone = kind === "openai-compat" && !(typeof max_tokens === "number" && max_tokens > 0);
  return usage === "openai_chat" && !isAlone ? [json.max_tokens, json.max_completion_tokens] : [];
};

const getMaxOutput = (given: readonly unknown[]): number | undefined => {
  const limits = given.filter((one): one is number => typeof one === "number" && one > 0);
  return limits.length > 0 ? Math.min(Math.ceil(Math.max(...limits)), MAX_OUTPUT_TOKENS) : undefined;
};

const countAnswers = ({ usage }: Endpoint, json: Json): number => {
  const google = usage === "google" ? getGenerationConfig(json) : undefined;
  const given = usage === "openai_chat" ? json.n : (google?.candidateCount ?? google?.candidate_count);
  return typeof given === "number" && given >= 1 ? Math.min(Math.ceil(given), MAX_ANSWERS) : 1;
};

/**
 * Estimates text by its size in bytes. Images and content at URLs have fixed estimates, because their size says nothing about their tokens.
 */
const estimatePromptTokens = ({ dialect }: Endpoint, json: Json, size: number): number => {
  let images = 0;
  let imageBytes = 0;
  let fetched = hasProviderTool(dialect, json) ? DOCUMENT_TOKENS : 0;
  for (const part of listObjects(json)) {
    const data = isImagePart(part);
    if (data === undefined) {
      fetched += estimateFetchedTokens(part);
      continue;
    }
    images += 1;
    imageBytes += data.length;
  }
  const text = Math.max(0, size - imageBytes) / BYTES_PER_TOKEN;
  return Math.min(Math.ceil(text) + images * IMAGE_TOKENS + fetched, MAX_PROMPT_TOKENS);
};

/** Tools that the caller runs, whose results are in its next request. A tool of Anthropic without a type is one, too. */
const CLIENT_TYPES = /^(?:function|custom|bash_|text_editor_|memory_|computer|local_shell|shell|apply_patch)/;
const GOOGLE_CLIENT_KEYS = new Set(["functionDeclarations", "function_declarations", "computerUse", "computer_use"]);

/** Returns whether the provider itself runs tools, which may add results, pages or the answers of MCP servers to the prompt. */
const hasProviderTool = (dialect: Endpoint["dialect"], json: Json): boolean => {
  const { tools, web_search_options, mcp_servers } = json;
  if (isObject(web_search_options) || (Array.isArray(mcp_servers) && mcp_servers.length > 0)) return true;
  const list = (Array.isArray(tools) ? tools : []).filter(isObject);
  return dialect === "google"
    ? list.some((tool) => Object.keys(tool).some((key) => !GOOGLE_CLIENT_KEYS.has(key)))
    : list.some(({ type }) => typeof type === "string" && !CLIENT_TYPES.test(type));
};

/**
 * Returns the estimate, beyond its bytes, for a part with a document or a video, or with a URL of something other than an image; 0 for
 * others. The size of a video says nothing about its length.
 */
const estimateFetchedTokens = (part: Json): number => {
  const media = findObject(part.inlineData, part.inline_data);
  if (media && /^video\//i.test(toText(media.mimeType ?? media.mime_type))) return RECORDING_TOKENS;
  const inline = findInlineDocument(part);
  if (inline !== "") return Math.max(0, DOCUMENT_TOKENS - Math.ceil(inline.length / BYTES_PER_TOKEN));
  const google = findObject(part.fileData, part.file_data);
  if (google && toText(google.fileUri ?? google.file_uri) !== "") {
    return /^(?:application|text)\//.test(toText(google.mimeType ?? google.mime_type))
      ? DOCUMENT_TOKENS
      : RECORDING_TOKENS;
  }
  const isOfAnthropic = part.type === "document" && isObject(part.source) && toText(part.source.url) !== "";
  return isOfAnthropic || toText(part.file_url) !== "" ? DOCUMENT_TOKENS : 0;
};

/** Returns the data of a document in a part, which may be compressed, as in a PDF; empty for other parts. */
const findInlineDocument = (part: Json): string => {
  if (part.type === "document" && isObject(part.source)) {
    return part.source.type === "text" ? "" : toText(part.source.data);
  }
  const google = findObject(part.inlineData, part.inline_data);
  const isDocument = google && /^application\//.test(toText(google.mimeType ?? google.mime_type));
  return isDocument ? toText(google.data) : toText(part.file_data);
};

/** Returns the data or the URL of an image part; undefined for other parts. */
const isImagePart = (part: Json): string | undefined => {
  if (part.type === "image_url" || part.type === "input_image") {
    const { image_url } = part;
    return toText(isObject(image_url) ? image_url.url : image_url);
  }
  if (part.type === "image" && isObject(part.source)) return toText(part.source.data ?? part.source.url);
  const google = findObject(part.inlineData, part.inline_data) ?? findObject(part.fileData, part.file_data);
  if (google && toText(google.mimeType ?? google.mime_type).startsWith("image/")) {
    return toText(google.data ?? google.fileUri ?? google.file_uri);
  }
  return undefined;
};

/** Avoids allocating a list, because this is called for every object of a body. */
const findObject = (one: unknown, other: unknown): Json | undefined => {
  if (isObject(one)) return one;
  return isObject(other) ? other : undefined;
};

const toText = (value: unknown): string => (typeof value === "string" ? value : "");
