// Extracts reasoning between tags from a response's text, for servers that leave the tags in the text. Tags may be split between
// chunks. Pure, except for its own state; used by stream.ts (rule MO-41).
import type { ModelEvent } from "./model.ts";

const PAIRS: ReadonlyMap<string, string> = new Map([
  ["<think>", "</think>"],
  ["<thinking>", "</thinking>"],
  ["[THINK]", "[/THINK]"],
]);
const OPENING_TAGS = [...PAIRS.keys()];
/** Closes reasoning whose opening tag was part of the prompt. */
const ORPHAN_CLOSING = "</think>";

/** One instance per response. Only the start of a response can be reasoning: a tag later in the text stays text. */
export class ThinkTags {
  /** Text that may be the beginning of a tag. */
  #heldText = "";
  /** The tag that ends the reasoning. */
  #closing: string | undefined;
  /** Non-blank text was emitted. */
  #hasEmitted = false;
  /** A closing tag without an opening one is text from now on. */
  #isSettled = false;
  /** The text so far; only its end and whether it is within code matter. */
  #textBefore = "";

  /** Converts an event; events other than text release held-back text. */
  *add(event: ModelEvent): Iterable<ModelEvent> {
    if (event.type !== "text" || event.metadata) {
      if (event.type !== "usage") yield* this.#flush(event.type === "finish");
      if (event.type === "reasoning") this.#isSettled = true;
      yield event;
      return;
    }
    this.#heldText += event.delta;
    while (this.#heldText !== "") {
      const more = this.#closing === undefined ? this.#readText() : this.#readThought(this.#closing);
      if (more === undefined) return;
      yield* more;
    }
  }

  /** Returns undefined while more text is needed to decide. */
  #readText(): ModelEvent[] | undefined {
    if (!this.#hasEmitted) {
      const trimmed = this.#heldText.trimStart();
      const opening = OPENING_TAGS.find((tag) => trimmed.startsWith(tag));
      if (opening) {
        this.#heldText = trimmed.slice(opening.length);
        this.#closing = PAIRS.get(opening);
        return [];
      }
      if (OPENING_TAGS.some((tag) => tag.startsWith(trimmed))) return undefined;
      this.#hasEmitted = true;
      if (this.#isSettled) this.#heldText = trimmed;
    }
    if (this.#isSettled) return [toDelta("text", this.#takeHeld(this.#heldText.length))];
    const at = this.#heldText.indexOf(ORPHAN_CLOSING);
    if (at < 0) return this.#emitBeforeTag(ORPHAN_CLOSING, "text");
    const before = this.#takeHeld(at);
    this.#textBefore += before;
    if (!isOnOwnLine(this.#textBefore)) {
      this.#isSettled = true;
      return before === "" ? [] : [toDelta("text", before)];
    }
    this.#heldText = this.#heldText.slice(ORPHAN_CLOSING.length).trimStart();
    this.#isSettled = true;
    this.#hasEmitted = false;
    return [...(before === "" ? [] : [toDelta("text", before)]), { type: "text_was_reasoning" }];
  }

  #readThought(closing: string): ModelEvent[] | undefined {
    const at = this.#heldText.indexOf(closing);
    if (at < 0) return this.#emitBeforeTag(closing, "reasoning");
    const before = this.#takeHeld(at);
    this.#heldText = this.#heldText.slice(closing.length).trimStart();
    this.#closing = undefined;
    this.#isSettled = true;
    return [{ type: "reasoning", delta: before, ends: true }];
  }

  /** Emits everything except a possible start of the tag. */
  #emitBeforeTag(tag: string, type: "text" | "reasoning"): ModelEvent[] | undefined {
    let heldBack = Math.min(tag.length - 1, this.#heldText.length);
    while (heldBack > 0 && !tag.startsWith(this.#heldText.slice(-heldBack))) heldBack -= 1;
    const emittedText = this.#takeHeld(this.#heldText.length - heldBack);
    if (type === "text") this.#textBefore += emittedText;
    return emittedText === "" ? undefined : [toDelta(type, emittedText)];
  }

  #takeHeld(length: number): string {
    const emittedText = this.#heldText.slice(0, length);
    this.#heldText = this.#heldText.slice(length);
    return emittedText;
  }

  *#flush(isEnd: boolean): Iterable<ModelEvent> {
    const emittedText = this.#takeHeld(this.#heldText.length);
    if (emittedText.trim() !== "" || (emittedText !== "" && !isEnd))
      yield toDelta(this.#closing ? "reasoning" : "text", emittedText);
  }
}

/** A tag that closes reasoning is at the start of a line and not in a code block: text about tags mentions them within a sentence. */
const isOnOwnLine = (before: string): boolean =>
  (before === "" || before.endsWith("\n")) && before.split("```").length % 2 === 1;

const toDelta = (type: "text" | "reasoning", delta: string): ModelEvent => ({ type, delta });
