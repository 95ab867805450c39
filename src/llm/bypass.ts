// Passes text of a chat-completions response around the provider's package, which sends each chunk through five streams and a schema
// although most contain only a few words. The beginning of a stream is read here. Starting with the first other chunk, such as a tool call,
// the package reads everything, so that the order is preserved (rule MO-66). Written by chat-chunks.ts, read by stream.ts.
import type { ModelEvent } from "./model.ts";
import { isMembers, type Members, parseMembers } from "./normalize-stream.ts";

/** Backpressure: maximum number of unread characters before reading of the response pauses. */
const MAX_WAITING_CHARS = 256 * 1024;

type TextDelta = { readonly type: "text" | "reasoning"; delta: string; readonly ends?: true };

/** One instance per request. */
export class Bypass {
  #events: TextDelta[] = [];
  #waitingChars = 0;
  #isOpen = true;
  #isReasoning = false;
  #wake: () => void = () => {};
  #onDrained: () => void = () => {};

  /** Takes a chunk's content. "package": the package must read it, and all following chunks whose order matters. */
  readChunk(data: string): "words" | "nothing" | "package" {
    if (!this.#isOpen) return "package";
    const chunk = parseMembers(data);
    if (chunk !== undefined && isEmptyChunk(chunk)) return "package";
    const chunkText = chunk && readText(chunk);
    this.#isOpen = chunkText !== undefined;
    if (chunkText === undefined) {
      if (this.#isReasoning && chunk && hasOnlyCalls(chunk)) this.#push({ type: "reasoning", delta: "", ends: true });
      return "package";
    }
    const { reasoning, text } = chunkText;
    if (reasoning !== "") this.#add("reasoning", reasoning);
    if (text !== "") this.#add("text", text);
    return reasoning === "" && text === "" ? "nothing" : "words";
  }

  /** False once the package reads everything. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Returns the text since the last call, joined. */
  drain(): readonly ModelEvent[] {
    if (this.#events.length === 0) return NO_EVENTS;
    const events = this.#events;
    this.#events = [];
    this.#waitingChars = 0;
    this.#onDrained();
    return events;
  }

  /** Resolves when there is new text, or when `wake` is called. */
  waitForEvents(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
      if (this.#events.length > 0) resolve();
    });
  }

  wake(): void {
    this.#wake();
  }

  /** Resolves when the reader has caught up; undefined if it already has. */
  waitForRoom(): Promise<void> | undefined {
    if (this.#waitingChars <= MAX_WAITING_CHARS) return undefined;
    return new Promise((resolve) => {
      this.#onDrained = resolve;
    });
  }

  #add(type: TextDelta["type"], delta: string): void {
    this.#isReasoning = type === "reasoning";
    this.#waitingChars += delta.length;
    const last = this.#events.at(-1);
    if (last?.type === type) last.delta += delta;
    else this.#push({ type, delta });
  }

  #push(event: TextDelta): void {
    this.#events.push(event);
    this.#wake();
  }
}

const NO_EVENTS: readonly ModelEvent[] = [];

type ChunkText = { readonly reasoning: string; readonly text: string };

/** True for a chunk without choices, such as one with only the usage, which the package reads at the end. */
const isEmptyChunk = ({ choices, error }: Members): boolean =>
  error === undefined && Array.isArray(choices) && choices.length === 0;

/** Returns a chunk's text as the package would; undefined if it contains anything else, or anything unusual. */
const readText = (chunk: Members): ChunkText | undefined => {
  const { choices, usage } = chunk;
  if ("error" in chunk || !isAbsent(usage) || !Array.isArray(choices) || choices.length !== 1) return undefined;
  const [choice] = choices as unknown[];
  if (!isMembers(choice) || !isAbsent(choice.finish_reason) || !isMembers(choice.delta)) return undefined;
  const { role, content, reasoning_content, reasoning, tool_calls, refusal } = choice.delta;
  if (!isAbsent(tool_calls) || !isAbsent(refusal)) return undefined;
  if (!(isAbsent(role) || role === "" || role === "assistant")) return undefined;
  if (!isText(content) || !isText(reasoning_content) || !isText(reasoning)) return undefined;
  return { reasoning: reasoning_content ?? reasoning ?? "", text: content ?? "" };
};

/** Returns whether a chunk contains only tool calls, which end an open reasoning block. */
const hasOnlyCalls = ({ choices }: Members): boolean => {
  const [choice] = Array.isArray(choices) ? (choices as unknown[]) : [];
  if (!isMembers(choice) || !isMembers(choice.delta)) return false;
  const { tool_calls, reasoning_content, reasoning } = choice.delta;
  return Array.isArray(tool_calls) && tool_calls.length > 0 && isAbsent(reasoning_content ?? reasoning);
};

const isAbsent = (value: unknown): value is undefined | null => value === undefined || value === null;
const isText = (value: unknown): value is string | undefined | null => isAbsent(value) || typeof value === "string";
