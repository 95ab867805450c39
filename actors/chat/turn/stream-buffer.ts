// The live output of one attempt: numbers its parts, limits their size, and sends them to followers once per turn of the event loop, without
// the chat's mailbox. A follower that joins late gets a copy (docs/spec/design.md 7, facts/chats 2.5 to 2.7).
import { type MessagePart, presentPart } from "#schema/chats/chat-part.ts";
import type { Fence } from "../machine/decision.ts";

/** Maximum characters of JSON per attempt. Later parts are dropped, but the stored message is complete. */
const MAX_BUFFER_CHARACTERS = 1_048_576;
/** Maximum events in one frame (facts/chats 2.1). */
export const MAX_FRAME_EVENTS = 256;

/** Parts for followers: stream events as JSON, numbered from `first_seq` without gaps. */
export type PartBatch = Fence & { readonly first_seq: number; readonly events: readonly string[] };

export class StreamBuffer {
  readonly fence: Fence;
  /** The JSON at the beginning of every event. */
  readonly #head: string;
  readonly #publish: (batch: PartBatch) => void;
  readonly #events: string[] = [];
  #publishedCount = 0;
  #characters = 0;
  #isScheduled = false;
  #isClosed = false;

  constructor(chat_id: string, fence: Fence, publish: (batch: PartBatch) => void) {
    this.fence = fence;
    this.#publish = publish;
    const { history_version, generation_attempt } = fence;
    this.#head = `{"type":"message_part","chat_id":"${chat_id}","message_part":{"history_version":${history_version},"generation_attempt":${generation_attempt},"seq":`;
  }

  /** Adds a part of a message with this role. */
  push(part: MessagePart, role: "assistant" | "tool" = "assistant"): void {
    if (this.#isClosed || this.#characters > MAX_BUFFER_CHARACTERS) return;
    const event = `${this.#head}${this.#events.length + 1},"role":"${role}","part":${JSON.stringify(presentPart(part, false))}}}`;
    this.#events.push(event);
    this.#characters += event.length;
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      if (!this.#isClosed) this.flush();
    });
  }

  /** Sends pending parts to followers. */
  flush(): void {
    while (this.#publishedCount < this.#events.length) {
      const events = this.#events.slice(this.#publishedCount, this.#publishedCount + MAX_FRAME_EVENTS);
      const first_seq = this.#publishedCount + 1;
      this.#publishedCount += events.length;
      this.#publish({ ...this.fence, first_seq, events });
    }
  }

  /** Sends pending parts and rejects new ones. */
  close(): void {
    if (this.#isClosed) return;
    this.flush();
    this.#isClosed = true;
  }

  /** Returns all parts so far. A follower that joins late gets parts that are not sent yet a second time, with the same numbers. */
  copy(): PartBatch {
    return { ...this.fence, first_seq: 1, events: [...this.#events] };
  }
}
