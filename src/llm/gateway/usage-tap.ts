// Reads the usage from a streamed response: server-sent events, JSON, or Gemini's stream of a JSON array. Changes nothing, except that it
// removes the chunk with a stream's usage if only the gateway has requested it. Memory is bounded.
import { tryParseJson } from "#base/json/read.ts";
import { MAX_CALL_TOKENS, type ModelUsage } from "../model.ts";
import type { UsageFormat } from "./endpoint.ts";
import { isObject, type Json } from "./json.ts";

/** Maximum size of an event, or of a non-streamed response, that is parsed. Larger ones pass unread. */
const MAX_TEXT_BYTES = 16 * 1024 * 1024;
/** Maximum size of a buffered incomplete event. */
const MAX_WAITING_BYTES = 1024 * 1024;

type UsageCounts = Json | null | undefined;

export type TappedUsage = {
  /** Undefined if the response has not reported it. */
  readonly usage: ModelUsage | undefined;
  /** The model named in the response; empty if none exists. */
  readonly model: string;
  /** Size of the text since the last usage report, for estimating the rest. */
  readonly text_bytes: number;
  /** True if a stream has reported an error after it started. */
  readonly failed: boolean;
};

export class UsageTap {
  readonly #format: UsageFormat | undefined;
  readonly #isEvents: boolean;
  readonly #hidesUsage: boolean;
  #heldPieces: Uint8Array[] = [];
  #heldBytes = 0;
  #isTooLong = false;
  /** The current event is too long to be parsed. */
  #isEventTooLong = false;
  #isImplausible = false;
  #textBytes = 0;
  /** Size of the text at the last usage report. */
  #reportedBytes = 0;
  #model = "";
  #failed = false;
  #usage: ModelUsage | undefined;

  constructor(options: {
    readonly format: UsageFormat | undefined;
    /** Content type of the response. */
    readonly type: string;
    readonly hidesUsage: boolean;
  }) {
    this.#format = options.format;
    this.#isEvents = options.type.startsWith("text/event-stream");
    this.#hidesUsage = options.hidesUsage && this.#isEvents;
  }

  get tapped(): TappedUsage {
    // After an impossible figure, earlier figures are not trusted either.
    const usage = this.#isImplausible || this.#reportsNoOutput() ? undefined : this.#usage;
    const text_bytes = this.#textBytes - (usage ? this.#reportedBytes : 0);
    return { usage, model: this.#model, text_bytes, failed: this.#failed };
  }

  /** True if the last report says that the output was empty, although text was sent. */
  #reportsNoOutput(): boolean {
    return this.#usage?.output_tokens === 0 && this.#reportedBytes > 0;
  }

  /** Parses a chunk of the response and returns the bytes for the caller: the same bytes, unless a usage chunk is hidden. */
  read(piece: Uint8Array): Uint8Array {
    if (this.#format === undefined) return piece;
    if (this.#isEvents) return this.#readEvents(piece);
    this.#hold(piece);
    return piece;
  }

  /** Returns held-back bytes at the end of the response, after parsing them. */
  end(): Uint8Array {
    const rest = this.#flushHeld();
    if (!this.#isEvents) this.#readWhole(rest);
    else if (rest.length > 0 && !this.#isEventTooLong) this.#readEvent(rest);
    return this.#hidesUsage ? rest : new Uint8Array();
  }

  /** Events end with a blank line. An event that may be hidden must be complete before any of it is passed on. */
  #readEvents(piece: Uint8Array): Uint8Array {
    const passed: Uint8Array[] = [];
    let from = 0;
    for (let at = 0; at < piece.length; at++) {
      if (piece[at] !== LINE_FEED || !this.#endsEvent(piece, at)) continue;
      this.#holdEvent(piece.subarray(from, at + 1), passed);
      from = at + 1;
      const event = this.#flushHeld();
      const isHidden = !this.#isEventTooLong && this.#readEvent(event) && this.#hidesUsage;
      this.#isEventTooLong = false;
      if (!isHidden) passed.push(event);
    }
    this.#holdEvent(piece.subarray(from), passed);
    return this.#hidesUsage ? join(passed) : piece;
  }

  /** Buffers an incomplete event. One that is too long is passed on as it arrives, and counts as text. */
  #holdEvent(bytes: Uint8Array, passed: Uint8Array[]): void {
    const limit = this.#hidesUsage ? MAX_WAITING_BYTES : MAX_TEXT_BYTES;
    if (!this.#isEventTooLong && this.#heldBytes + bytes.length > limit) {
      this.#isEventTooLong = true;
      this.#textBytes += this.#heldBytes;
    }
    if (!this.#isEventTooLong) {
      this.#hold(bytes);
      return;
    }
    this.#textBytes += bytes.length;
    passed.push(this.#flushHeld());
    // The last bytes are enough to detect the end of an event.
    const tail = bytes.length > 2 ? bytes.subarray(-2) : bytes;
    passed.push(bytes.subarray(0, bytes.length - tail.length));
    this.#hold(tail);
  }

  /** True if the line feed at this position is the second in a row, ignoring carriage returns. */
  #endsEvent(piece: Uint8Array, at: number): boolean {
    let back = at - 1;
    if (this.#getByteAt(piece, back) === CARRIAGE_RETURN) back--;
    return this.#getByteAt(piece, back) === LINE_FEED;
  }

  #getByteAt(piece: Uint8Array, at: number): number | undefined {
    if (at >= 0) return piece[at];
    const last = this.#heldPieces.at(-1);
    return last?.at(at) ?? this.#heldPieces.at(-2)?.at(at + (last?.length ?? 0));
  }

  #hold(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    if (!this.#isEvents && this.#heldBytes + bytes.length > MAX_TEXT_BYTES) {
      // Too long to be parsed: its end is kept, because it contains the usage.
      this.#isTooLong = true;
      this.#textBytes += this.#heldBytes - (this.#heldPieces.at(-1)?.length ?? 0);
      this.#heldPieces = this.#heldPieces.slice(-1);
      this.#heldBytes = this.#heldPieces[0]?.length ?? 0;
    }
    this.#heldPieces.push(bytes);
    this.#heldBytes += bytes.length;
  }

  #flushHeld(): Uint8Array {
    const held = this.#heldPieces.length === 1 ? (this.#heldPieces[0] as Uint8Array) : join(this.#heldPieces);
    this.#heldPieces = [];
    this.#heldBytes = 0;
    return held;
  }

  /** Parses one event. Returns true if it contains only the usage of a chat-completions stream. */
  #readEvent(event: Uint8Array): boolean {
    const data = readData(DECODER.decode(event));
    const json = parseObject(data);
    if (!json) {
      // An incomplete or unknown event: its text was sent nevertheless.
      if (data !== "" && data !== "[DONE]") this.#textBytes += Buffer.byteLength(data);
      return false;
    }
    this.#readJson(json);
    return Array.isArray(json.choices) && json.choices.length === 0 && isObject(json.usage);
  }

  #readWhole(bytes: Uint8Array): void {
    if (this.#format === undefined || bytes.length === 0) return;
    const text = DECODER.decode(bytes);
    const json = this.#isTooLong ? undefined : parseAny(text);
    if (Array.isArray(json)) for (const one of json) this.#readJson(one as Json);
    else if (isObject(json)) this.#readJson(json);
    else {
      // A truncated text: the last usage in it is used.
      this.#textBytes += bytes.length;
      const last = [...text.matchAll(/"(?:usage|usageMetadata)"\s*:\s*(\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\})/g)].at(-1);
      const usage = last?.[1] === undefined ? undefined : parseObject(last[1]);
      if (usage) this.#readJson({ usage, usageMetadata: usage });
    }
  }

  #readJson(json: Json): void {
    if (json.type === "error" || isObject(json.error)) this.#failed = true;
    const inner = [json.response, json.message].find(isObject);
    const model = [json.model, json.modelVersion, inner?.model].find((one) => typeof one === "string" && one !== "");
    if (typeof model === "string") this.#model = model;
    if (this.#format === undefined) return;
    this.#textBytes += countAnswerBytes(json);
    const found = READERS[this.#format](json, inner);
    if (!found) return;
    if (Object.values(found).some(Number.isNaN)) this.#isImplausible = true;
    if (found.output_tokens !== undefined) this.#reportedBytes = this.#textBytes;
    // Later reports of a stream complete or replace earlier ones.
    this.#usage = { ...this.#usage, ...found };
  }
}

/** Stateless between texts. */
const DECODER = new TextDecoder();
const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;

const DATA_PREFIX = "data:";

/** Returns the data of an event's lines. Avoids allocating matches, because thousands of chunks arrive per second. */
const readData = (event: string): string => {
  let data: string | undefined;
  for (const line of event.split(LINE_END)) {
    if (!line.startsWith(DATA_PREFIX)) continue;
    const text = line.slice(line[DATA_PREFIX.length] === " " ? DATA_PREFIX.length + 1 : DATA_PREFIX.length);
    data = data === undefined ? text : `${data}\n${text}`;
  }
  return data ?? "";
};

const LINE_END = /\r\n|\r|\n/;

/** Returns a reported figure, NaN if it is impossible, and undefined if it is missing. */
const toCount = (value: unknown): number | undefined => {
  if (typeof value !== "number" || value < 0) return undefined;
  return value <= MAX_CALL_TOKENS ? Math.trunc(value) : Number.NaN;
};

/** Members that are not part of the text. */
const NON_TEXT_MEMBERS = new Set([
  ...["id", "call_id", "type", "role", "object", "index", "status", "finish_reason", "finishReason", "stop_reason"],
  ...["logprobs", "logprobsResult", "annotations", "safetyRatings", "citationMetadata", "groundingMetadata"],
  "embedding",
]);

/** Members that contain an image. */
const PICTURE_MEMBERS = new Set(["inlineData", "inline_data", "b64_json", "partial_image_b64"]);
/** An image counts as this much text regardless of its size: about 1,600 tokens. */
const ASSUMED_PICTURE_BYTES = 6_400;

/**
 * Returns the size of the text in an event or response: output, reasoning and tool calls, in every dialect. Reasoning that is hidden in a
 * signature or encrypted also counts, because it is billed.
 */
const countAnswerBytes = (json: Json): number => {
  let size = 0;
  const waiting: unknown[] = [json.delta, json.content_block, json.content, json.choices, json.output, json.candidates];
  if (typeof json.partial_image_b64 === "string") size += ASSUMED_PICTURE_BYTES;
  // The text of an item was already sent in deltas; these members come only with its end.
  if (json.type === "response.output_item.done" && isObject(json.item)) {
    waiting.push(json.item.encrypted_content);
    if (json.item.type === "image_generation_call") size += ASSUMED_PICTURE_BYTES;
  }
  while (waiting.length > 0) {
    const next = waiting.pop();
    if (typeof next === "string") size += Buffer.byteLength(next);
    else if (Array.isArray(next)) for (const inner of next) waiting.push(inner);
    else if (isObject(next)) {
      for (const name in next) {
        if (PICTURE_MEMBERS.has(name)) size += ASSUMED_PICTURE_BYTES;
        else if (!NON_TEXT_MEMBERS.has(name)) waiting.push(next[name]);
      }
    }
  }
  return size;
};

/** The vectors of a few hundred texts. */
const MAX_VALUES = 1_000_000;

const parseAny = (text: string): unknown => tryParseJson(text, { maxValues: MAX_VALUES });
const parseObject = (text: string): Json | undefined => {
  const json = text === "" || text === "[DONE]" ? undefined : parseAny(text);
  return isObject(json) ? json : undefined;
};

const join = (pieces: readonly Uint8Array[]): Uint8Array => {
  const whole = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
};

/** Omits members without a value, so that they do not replace known ones. */
const omitUndefined = (usage: ModelUsage): ModelUsage | undefined => {
  const entries = Object.entries(usage).filter(([, value]) => value !== undefined);
  return entries.length > 0 ? (Object.fromEntries(entries) as ModelUsage) : undefined;
};

/** OpenAI's and Google's prompt tokens include cached ones; ours do not. More cached tokens than prompt tokens is impossible. */
const subtractCached = (all: unknown, cached: number | undefined): number | undefined => {
  const whole = toCount(all);
  if (whole === undefined) return undefined;
  return (cached ?? 0) > whole ? Number.NaN : whole - (cached ?? 0);
};

const READERS: Readonly<Record<UsageFormat, (json: Json, inner: Json | undefined) => ModelUsage | undefined>> = {
  anthropic(json, inner) {
    const usage = (json.usage ?? inner?.usage) as UsageCounts;
    if (!usage) return undefined;
    const cacheCreation = usage.cache_creation as UsageCounts;
    return omitUndefined({
      input_tokens: toCount(usage.input_tokens),
      output_tokens: toCount(usage.output_tokens),
      cache_read_tokens: toCount(usage.cache_read_input_tokens),
      cache_creation_tokens: toCount(usage.cache_creation_input_tokens),
      cache_creation_1h_tokens: toCount(cacheCreation?.ephemeral_1h_input_tokens),
    });
  },
  openai_chat(json) {
    const usage = json.usage as UsageCounts;
    if (!usage) return undefined;
    const cached = toCount(
      (usage.prompt_tokens_details as UsageCounts)?.cached_tokens ?? usage.prompt_cache_hit_tokens,
    );
    return omitUndefined({
      input_tokens: subtractCached(usage.prompt_tokens, cached),
      output_tokens: toCount(usage.completion_tokens),
      cache_read_tokens: cached,
    });
  },
  openai_responses(json, inner) {
    const usage = (inner?.usage ?? json.usage) as UsageCounts;
    if (!usage) return undefined;
    const cached = toCount((usage.input_tokens_details as UsageCounts)?.cached_tokens);
    return omitUndefined({
      input_tokens: subtractCached(usage.input_tokens, cached),
      output_tokens: toCount(usage.output_tokens),
      cache_read_tokens: cached,
    });
  },
  openai_embeddings(json) {
    const usage = json.usage as UsageCounts;
    return usage ? omitUndefined({ input_tokens: toCount(usage.prompt_tokens) }) : undefined;
  },
  google(json) {
    const usage = json.usageMetadata as UsageCounts;
    if (!usage) return undefined;
    const cached = toCount(usage.cachedContentTokenCount);
    const answerTokens = toCount(usage.candidatesTokenCount);
    const thoughtTokens = toCount(usage.thoughtsTokenCount);
    const promptCount = toCount(usage.promptTokenCount);
    const toolTokens = toCount(usage.toolUsePromptTokenCount) ?? 0;
    const output =
      answerTokens === undefined && thoughtTokens === undefined
        ? undefined
        : (answerTokens ?? 0) + (thoughtTokens ?? 0);
    return omitUndefined({
      input_tokens: promptCount === undefined ? undefined : subtractCached(promptCount + toolTokens, cached),
      output_tokens: output,
      cache_read_tokens: cached,
    });
  },
};
