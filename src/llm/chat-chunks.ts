// Normalizes the chunks of chat-completions servers for the package: servers of open models have many nonstandard members (rule MO-44).
// Used by adapters.ts.
import type { Bypass } from "./bypass.ts";
import { CallDeltas } from "./call-deltas.ts";
import type { GuardedFetch } from "./fetch.ts";
import {
  createNormalizingFetch,
  isMembers,
  type LineReader,
  type Members,
  parseMembers,
  toEventStream,
} from "./normalize-stream.ts";

/** Returns a fetch whose responses the package can read, without the text that bypasses it. */
export const normalizeChunks = (fetch: GuardedFetch, bypass?: Bypass): GuardedFetch =>
  createNormalizingFetch(fetch, {
    reader: () => new ChunkReader(bypass),
    toStream: (response) => toEventStream(response, toEvents),
  });

/** Only chunks that match one of these are parsed. Quotes inside texts are escaped, so they do not match. */
const NONSTANDARD_MEMBER =
  /"finish_reason"\s*:\s*[^n"\s]|"arguments"\s*:\s*\{|"(prompt|completion|total)_tokens"\s*:\s*"|"\w+_tokens_details"\s*:\s*[^n{\s]|"error"\s*:\s*"|"tool_calls"\s*:\s*\[\s*\{/;
const HAS_FINISH = /"finish_reason"\s*:\s*"/;
const HAS_TEXT = /"(content|reasoning_content|reasoning)"\s*:\s*"[^"]/;
const HAS_USAGE = /"choices"\s*:\s*\[\s*\]/;
const HAS_CALLS = /"tool_calls"\s*:\s*\[\s*\{/;

/** Reads one stream, line by line. */
class ChunkReader implements LineReader {
  #hasFinish = false;
  #hasText = false;
  #hasCalls = false;
  #hasUsage = false;
  readonly #deltas = new CallDeltas();
  readonly #bypass: Bypass | undefined;

  constructor(bypass: Bypass | undefined) {
    this.#bypass = bypass;
  }

  /** Returns the normalized line. An end without a finish reason gets the default one. */
  read(line: string): string {
    const data = line.slice("data:".length).trim();
    const outcome = this.#bypass?.readChunk(data);
    if (outcome === "words") this.#hasText = true;
    if (outcome === "words" || outcome === "nothing") return "";
    if (data === "[DONE]") {
      const ending = this.#createEnding();
      return ending === "" ? line : `${ending}\n\n${line}`;
    }
    const normalized = NONSTANDARD_MEMBER.test(data) ? normalizeChunk(data, this.#deltas) : data;
    this.#hasFinish ||= HAS_FINISH.test(normalized);
    this.#hasText ||= HAS_TEXT.test(normalized);
    this.#hasCalls ||= HAS_CALLS.test(normalized);
    this.#hasUsage ||= HAS_USAGE.test(normalized);
    return normalized === data ? line : `data: ${normalized}`;
  }

  /** A server that has sent the usage has finished, even without an end marker; any other stream has broken off. */
  end(): string {
    return this.#hasUsage ? this.#createEnding() : "";
  }

  waitForRoom(): Promise<void> | undefined {
    return this.#bypass?.waitForRoom();
  }

  #createEnding(): string {
    if (this.#hasFinish || !(this.#hasText || this.#hasCalls)) return "";
    this.#hasFinish = true;
    return `data: ${formatEnding(this.#hasCalls ? "tool_calls" : "stop")}`;
  }
}

const formatEnding = (finish_reason: string): string =>
  JSON.stringify({
    id: "end",
    object: "chat.completion.chunk",
    created: 0,
    model: "",
    choices: [{ index: 0, delta: {}, finish_reason }],
  });

/** Normalizes or drops nonstandard members of the chunk; returns text that is not a JSON object unchanged. */
const normalizeChunk = (data: string, deltas: CallDeltas): string => {
  const chunk = parseMembers(data);
  if (chunk === undefined) return data;
  if (typeof chunk.error === "string") chunk.error = { message: chunk.error };
  if ("usage" in chunk) chunk.usage = isMembers(chunk.usage) ? normalizeUsage(chunk.usage) : null;
  for (const choice of Array.isArray(chunk.choices) ? chunk.choices : []) {
    if (!isMembers(choice)) continue;
    const { finish_reason, delta } = choice;
    if (finish_reason !== null && finish_reason !== undefined && typeof finish_reason !== "string")
      choice.finish_reason = null;
    if (isMembers(delta) && Array.isArray(delta.tool_calls)) deltas.repair(delta.tool_calls, chunk.id);
  }
  return JSON.stringify(chunk);
};

/** Converts counts given as text, and drops details that are not objects. */
const normalizeUsage = (usage: Members): Members =>
  Object.fromEntries(
    Object.entries(usage).flatMap(([name, value]): [string, unknown][] => {
      if (name.endsWith("_details")) return isMembers(value) ? [[name, value]] : [];
      return [[name, typeof value === "string" && /^\d{1,12}$/.test(value) ? Number(value) : value]];
    }),
  );

/**
 * Converts the complete response of a server that does not support `stream: true`. An error in its place is reported like one in the middle
 * of a stream.
 */
const toEvents = (whole: Members): readonly (Members | string)[] | undefined => {
  if (whole.error !== undefined && whole.error !== null) return [{ error: whole.error }, "[DONE]"];
  const [choice] = Array.isArray(whole.choices) ? whole.choices : [];
  if (!isMembers(choice) || !isMembers(choice.message)) return undefined;
  const { id, created, model, usage } = whole;
  const chunk = { id, created, model, object: "chat.completion.chunk" };
  const { tool_calls, ...text } = choice.message;
  const calls = Array.isArray(tool_calls) ? tool_calls.map((call, index) => ({ ...call, index })) : undefined;
  const delta = calls === undefined ? text : { ...text, tool_calls: calls };
  return [
    { ...chunk, choices: [{ index: 0, delta, finish_reason: null }] },
    { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: choice.finish_reason ?? "stop" }], usage },
    "[DONE]",
  ];
};
