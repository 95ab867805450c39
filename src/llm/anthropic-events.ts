// Normalizes the events of servers with Anthropic's protocol for its package: gateways and open models omit members and whole events (rule
// MO-44). Used by adapters.ts.
import type { GuardedFetch } from "./fetch.ts";
import {
  createNormalizingFetch,
  isMembers,
  type LineReader,
  type Members,
  parseMembers,
  toEventStream,
} from "./normalize-stream.ts";

/** Returns a fetch whose responses the package can read. */
export const normalizeEvents = (fetch: GuardedFetch): GuardedFetch =>
  createNormalizingFetch(fetch, {
    reader: () => new EventReader(),
    toStream: (response) => toEventStream(response, toEvents),
  });

/** Reads one stream, line by line. */
class EventReader implements LineReader {
  #hasBegun = false;
  #hasEnd = false;
  #hasCalls = false;
  #id = "message";
  /** Types of the open blocks, by index: some servers send several blocks concurrently. */
  readonly #openTypes = new Map<number, string>();
  #nextIndex = 0;

  /** Returns the normalized line, preceded by events that the server omitted. */
  read(line: string): string {
    const event = parseMembers(line.slice("data:".length));
    if (event === undefined) return line;
    return this.expandEvent(event)
      .map((one) => `data: ${JSON.stringify(one)}`)
      .join("\n\n");
  }

  /** Returns the event, preceded by the events that the server left out. */
  expandEvent(event: Members): readonly Members[] {
    switch (event.type) {
      case "message_start":
        return this.#hasBegun ? PING_EVENTS : [this.#createStart(isMembers(event.message) ? event.message : {})];
      case "content_block_start":
        return [...this.#ensureStart(), ...this.#startBlock(event)];
      case "content_block_delta":
        return this.#toDelta(event);
      case "content_block_stop": {
        const [index = this.#lastIndex] = typeof event.index === "number" ? [event.index] : [];
        return this.#openTypes.delete(index) ? [{ ...event, index }] : PING_EVENTS;
      }
      case "message_delta": {
        const delta = isMembers(event.delta) ? event.delta : {};
        this.#hasEnd ||= typeof delta.stop_reason === "string";
        const normalized = { ...event, delta, usage: normalizeUsage(event.usage, "output_tokens") };
        return [...this.#ensureStart(), ...this.#closeBlocks(), normalized];
      }
      case "message_stop":
        return [...this.#ensureStart(), ...this.#closeBlocks(), ...(this.#hasEnd ? [] : [this.#createEnd()]), event];
      default:
        return [event];
    }
  }

  #createStart(message: Members): Members {
    this.#hasBegun = true;
    if (typeof message.id === "string") this.#id = message.id;
    return { type: "message_start", message: { ...message, usage: normalizeUsage(message.usage, "input_tokens") } };
  }

  #ensureStart(): readonly Members[] {
    return this.#hasBegun ? [] : [this.#createStart({})];
  }

  #closeBlocks(): readonly Members[] {
    const open = [...this.#openTypes.keys()];
    this.#openTypes.clear();
    return open.map((index) => ({ type: "content_block_stop", index }));
  }

  get #lastIndex(): number {
    return this.#nextIndex - 1;
  }

  #startBlock(event: Members): readonly Members[] {
    const index = typeof event.index === "number" ? event.index : this.#nextIndex;
    const block = isMembers(event.content_block) ? event.content_block : { type: "text", text: "" };
    const ended = this.#openTypes.has(index) ? [{ type: "content_block_stop", index }] : [];
    this.#nextIndex = Math.max(this.#nextIndex, index + 1);
    this.#openTypes.set(index, String(block.type));
    this.#hasCalls ||= block.type === "tool_use";
    return [...ended, { ...event, index, content_block: normalizeBlock(block, `${this.#id}_${index}`) }];
  }

  /** A delta for a block that has not started opens one of its kind; arguments without a call are dropped. */
  #toDelta(event: Members): readonly Members[] {
    const delta = isMembers(event.delta) ? event.delta : {};
    const target = DELTA_TARGETS[String(delta.type)];
    if (target === undefined) return [...this.#ensureStart(), event];
    const index = typeof event.index === "number" ? event.index : this.#lastIndex;
    const isOpen = this.#openTypes.get(index)?.endsWith(target.block) === true;
    const normalizedDelta = {
      ...delta,
      [target.member]: typeof delta[target.member] === "string" ? delta[target.member] : "",
    };
    if (isOpen) return [{ ...event, index, delta: normalizedDelta }];
    if (target.block === "tool_use") return PING_EVENTS;
    const content_block = { type: target.block, [target.member]: "" };
    const openedEvents = [...this.#ensureStart(), ...this.#startBlock({ type: "content_block_start", content_block })];
    return [...openedEvents, { ...event, index: this.#lastIndex, delta: normalizedDelta }];
  }

  #createEnd(): Members {
    const stop_reason = this.#hasCalls ? "tool_use" : "end_turn";
    return { type: "message_delta", delta: { stop_reason }, usage: normalizeUsage(undefined, "output_tokens") };
  }
}

/** An event without effect. */
const PING_EVENTS: readonly Members[] = [{ type: "ping" }];

/** The kind of block that a delta belongs to, and the member that it extends. */
const DELTA_TARGETS: Readonly<Record<string, { readonly block: string; readonly member: string }>> = {
  text_delta: { block: "text", member: "text" },
  thinking_delta: { block: "thinking", member: "thinking" },
  input_json_delta: { block: "tool_use", member: "partial_json" },
};

/** Drops invalid counts; the one that the package requires defaults to 0. */
const normalizeUsage = (usage: unknown, required: string): Members => {
  const given = isMembers(usage) ? Object.entries(usage) : [];
  const counted = given.flatMap(([name, value]): [string, unknown][] => {
    if (!name.endsWith("_tokens")) return [[name, value]];
    const count = typeof value === "string" && /^\d{1,12}$/.test(value) ? Number(value) : value;
    return typeof count === "number" ? [[name, count]] : [];
  });
  return { [required]: 0, ...Object.fromEntries(counted) };
};

const normalizeBlock = (block: Members, id: string): Members => {
  switch (block.type) {
    case "text":
    case "thinking":
      return { ...block, [block.type]: typeof block[block.type] === "string" ? block[block.type] : "" };
    case "tool_use": {
      const input = typeof block.input === "string" ? parseMembers(block.input) : block.input;
      const ownId = typeof block.id === "string" && block.id !== "" ? block.id : id;
      return { ...block, id: ownId, input: isMembers(input) ? input : {} };
    }
    default:
      return block;
  }
};

/** Converts the complete response of a server that does not support `stream: true`. */
const toEvents = (whole: Members): readonly Members[] | undefined => {
  if (whole.type === "error" || isMembers(whole.error)) return [{ type: "error", error: whole.error }];
  const { content, stop_reason, stop_sequence = null, usage, ...message } = whole;
  if (!Array.isArray(content)) return undefined;
  const blocks = content.filter(isMembers).flatMap((block, index): Members[] => {
    const start = (content_block: Members): Members => ({ type: "content_block_start", index, content_block });
    const delta = (one: Members): Members => ({ type: "content_block_delta", index, delta: one });
    const stop = { type: "content_block_stop", index };
    if (block.type === "text")
      return [start({ type: "text", text: "" }), delta({ type: "text_delta", text: block.text }), stop];
    if (block.type === "thinking") {
      const { thinking, signature } = block;
      const signed = typeof signature === "string" ? [delta({ type: "signature_delta", signature })] : [];
      return [start({ type: "thinking", thinking: "" }), delta({ type: "thinking_delta", thinking }), ...signed, stop];
    }
    if (block.type === "tool_use") {
      const partial_json = JSON.stringify(block.input ?? {});
      return [start({ ...block, input: {} }), delta({ type: "input_json_delta", partial_json }), stop];
    }
    return [start(block), stop];
  });
  const end = { type: "message_delta", delta: { stop_reason: stop_reason ?? "end_turn", stop_sequence }, usage };
  const reader = new EventReader();
  return [{ type: "message_start", message: { ...message, usage } }, ...blocks, end, { type: "message_stop" }].flatMap(
    (event) => reader.expandEvent(event),
  );
};
