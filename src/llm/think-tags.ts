// Extracts reasoning between tags from the text of servers that do not know how their model marks it, also if a tag is split between
// chunks. Pure, except for its own state; used by stream.ts (rule MO-41).
import type { ModelEvent } from "./model.ts";

const PAIRS: ReadonlyMap<string, string> = new Map([
  ["<think>", "</think>"],
  ["<thinking>", "</thinking>"],
  ["[THINK]", "[/THINK]"],
]);
const OPENING = [...PAIRS.keys()];
/** Closes reasoning whose opening tag was part of the prompt. */
const ORPHAN = "</think>";

/** One instance per response. Only the start of a response can be reasoning: a tag later in the text stays text. */
export class ThinkTags {
  /** Text that may be the beginning of a tag. */
  #held = "";
  /** The tag that ends the reasoning. */
  #closing: string | undefined;
  /** Non-blank text was emitted. */
  #hasSpoken = false;
  /** A closing tag without an opening one is text from now on. */
  #isSettled = false;
  /** The text so far; only its end and whether it is within code matter. */
  #before = "";

  /** Converts an event; events other than text release held-back text. */
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

  /** Returns undefined while more text is needed to decide. */
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

  /** Emits everything except a possible start of the tag. */
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

/** A tag that closes reasoning is at the start of a line and not in a code block: text about tags mentions them within a sentence. */
const isOnItsOwn = (before: string): boolean =>
  (before === "" || before.endsWith("\n")) && before.split("```").length % 2 === 1;

const said = (type: "text" | "reasoning", delta: string): ModelEvent => ({ type, delta });
