// The words of a chat-completions answer on a way around the provider's package: it takes each chunk through five streams and a schema, and most
// chunks say only a few more words. What a stream begins with is read here; from the first chunk of another kind on, such as a call, the
// package reads everything, so that nothing overtakes anything (rule MO-66). Written by chat-chunks.ts, read by stream.ts.
import type { ModelEvent } from "./model.ts";
import { isMembers, type Members, membersIn } from "./sound-stream.ts";

/** Characters that may wait for the reader before more of the answer is read. */
const MAX_WAITING = 256 * 1024;

type Said = { readonly type: "text" | "reasoning"; delta: string; readonly ends?: true };

/** One for each request. */
export class Bypass {
  #events: Said[] = [];
  #waiting = 0;
  #isOpen = true;
  #thinks = false;
  #wake: () => void = () => {};
  #isRead: () => void = () => {};

  /** Takes what a chunk says. "package": it has to be read by the package, as do all that follow one whose order counts. */
  take(data: string): "words" | "nothing" | "package" {
    if (!this.#isOpen) return "package";
    const chunk = membersIn(data);
    if (chunk !== undefined && saysNothing(chunk)) return "package";
    const words = chunk && wordsIn(chunk);
    this.#isOpen = words !== undefined;
    if (words === undefined) {
      if (this.#thinks && chunk && callsOnly(chunk)) this.#push({ type: "reasoning", delta: "", ends: true });
      return "package";
    }
    const { reasoning, text } = words;
    if (reasoning !== "") this.#add("reasoning", reasoning);
    if (text !== "") this.#add("text", text);
    return reasoning === "" && text === "" ? "nothing" : "words";
  }

  /** False: the package reads everything from now on. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Returns what was said since. Pieces that came at once are one. */
  drain(): readonly ModelEvent[] {
    if (this.#events.length === 0) return NOTHING;
    const events = this.#events;
    this.#events = [];
    this.#waiting = 0;
    this.#isRead();
    return events;
  }

  /** Resolves when something was said, and when `wake` is called. */
  news(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
      if (this.#events.length > 0) resolve();
    });
  }

  wake(): void {
    this.#wake();
  }

  /** Resolves when the reader has kept up; undefined when it has. */
  room(): Promise<void> | undefined {
    if (this.#waiting <= MAX_WAITING) return undefined;
    return new Promise((resolve) => {
      this.#isRead = resolve;
    });
  }

  #add(type: Said["type"], delta: string): void {
    this.#thinks = type === "reasoning";
    this.#waiting += delta.length;
    const last = this.#events.at(-1);
    if (last?.type === type) last.delta += delta;
    else this.#push({ type, delta });
  }

  #push(event: Said): void {
    this.#events.push(event);
    this.#wake();
  }
}

const NOTHING: readonly ModelEvent[] = [];

type Words = { readonly reasoning: string; readonly text: string };

/** A chunk of counters or of nothing at all; what it says comes at the end. */
const saysNothing = ({ choices, error }: Members): boolean =>
  error === undefined && Array.isArray(choices) && choices.length === 0;

/** What a chunk says, as the package reads it; undefined when there is anything else in it, or anything odd. */
const wordsIn = (chunk: Members): Words | undefined => {
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

/** Ends a thought that is open. */
const callsOnly = ({ choices }: Members): boolean => {
  const [choice] = Array.isArray(choices) ? (choices as unknown[]) : [];
  if (!isMembers(choice) || !isMembers(choice.delta)) return false;
  const { tool_calls, reasoning_content, reasoning } = choice.delta;
  return Array.isArray(tool_calls) && tool_calls.length > 0 && isAbsent(reasoning_content ?? reasoning);
};

const isAbsent = (value: unknown): value is undefined | null => value === undefined || value === null;
const isText = (value: unknown): value is string | undefined | null => isAbsent(value) || typeof value === "string";
