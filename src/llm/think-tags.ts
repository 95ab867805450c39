// Servers that do not know how their model marks its thinking send it among the text, between tags. Takes it out as reasoning, also when
// a tag is split between chunks. Pure but for its own memory; used by stream.ts (rule MO-41).
import type { ModelEvent } from "./model.ts";

const PAIRS: ReadonlyMap<string, string> = new Map([
  ["<think>", "</think>"],
  ["<thinking>", "</thinking>"],
  ["[THINK]", "[/THINK]"],
]);
const OPENING = [...PAIRS.keys()];
/** What closes thinking that the model was made to begin before its first word. */
const ORPHAN = "</think>";

/** One for each answer. Only what the answer begins with is thinking: a tag that is talked about later stays text. */
export class ThinkTags {
  /** Text that may be the beginning of a tag. */
  #held = "";
  /** The tag that ends the thinking. */
  #closing: string | undefined;
  /** Something that is no blank was said as text. */
  #hasSpoken = false;
  /** No closing tag may be without its opening one any more. */
  #isSettled = false;
  /** What was said as text; only its end and whether it is within code count. */
  #before = "";

  /** What the event means; events that are no text release what was held. */
  *add(event: ModelEvent): Iterable<ModelEvent> {
    if (event.type !== "text" || event.metadata) {
      if (event.type !== "usage") yield* this.#flush(event.type === "finish");
      if (event.type === "reasoning") this.#isSettled = true;
      yield event;
      return;
    }
    this.#held += event.delta;
    while (this.#held !== "") {
      const more = this.#closing === undefined ? this.#asText() : this.#asThought(this.#closing);
      if (more === undefined) return;
      yield* more;
    }
  }

  /** Undefined while more must come to know. */
  #asText(): ModelEvent[] | undefined {
    if (!this.#hasSpoken) {
      const trimmed = this.#held.trimStart();
      const opening = OPENING.find((tag) => trimmed.startsWith(tag));
      if (opening) {
        this.#held = trimmed.slice(opening.length);
        this.#closing = PAIRS.get(opening);
        return [];
      }
      if (OPENING.some((tag) => tag.startsWith(trimmed))) return undefined;
      this.#hasSpoken = true;
      if (this.#isSettled) this.#held = trimmed;
    }
    if (this.#isSettled) return [said("text", this.#taken(this.#held.length))];
    const at = this.#held.indexOf(ORPHAN);
    if (at < 0) return this.#upToTag(ORPHAN, "text");
    const before = this.#taken(at);
    this.#before += before;
    if (!isOnItsOwn(this.#before)) {
      this.#isSettled = true;
      return before === "" ? [] : [said("text", before)];
    }
    this.#held = this.#held.slice(ORPHAN.length).trimStart();
    this.#isSettled = true;
    this.#hasSpoken = false;
    return [...(before === "" ? [] : [said("text", before)]), { type: "text_was_reasoning" }];
  }

  #asThought(closing: string): ModelEvent[] | undefined {
    const at = this.#held.indexOf(closing);
    if (at < 0) return this.#upToTag(closing, "reasoning");
    const before = this.#taken(at);
    this.#held = this.#held.slice(closing.length).trimStart();
    this.#closing = undefined;
    this.#isSettled = true;
    return [{ type: "reasoning", delta: before, ends: true }];
  }

  /** All but an end that may be the beginning of the tag. */
  #upToTag(tag: string, type: "text" | "reasoning"): ModelEvent[] | undefined {
    let kept = Math.min(tag.length - 1, this.#held.length);
    while (kept > 0 && !tag.startsWith(this.#held.slice(-kept))) kept -= 1;
    const words = this.#taken(this.#held.length - kept);
    if (type === "text") this.#before += words;
    return words === "" ? undefined : [said(type, words)];
  }

  #taken(length: number): string {
    const words = this.#held.slice(0, length);
    this.#held = this.#held.slice(length);
    return words;
  }

  *#flush(isEnd: boolean): Iterable<ModelEvent> {
    const words = this.#taken(this.#held.length);
    if (words.trim() !== "" || (words !== "" && !isEnd)) yield said(this.#closing ? "reasoning" : "text", words);
  }
}

/** A tag that closes thinking begins a line and stands in no block of code: anyone who talks about tags does so within a sentence. */
const isOnItsOwn = (before: string): boolean =>
  (before === "" || before.endsWith("\n")) && before.split("```").length % 2 === 1;

const said = (type: "text" | "reasoning", delta: string): ModelEvent => ({ type, delta });
