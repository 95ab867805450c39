// Live text of a sub-chat while its root waits, shown on the waiting call: each message of the sub-chat replaces the previous one
// (facts/chats 2.6). Independent of the store. Gets the batches that followers get, which may overlap.
import type { Live } from "#src/tools/subagents/agents.ts";
import type { PartBatch } from "../turn/stream-buffer.ts";

export class SubagentText {
  readonly #live: Live;
  #history = 0;
  #attempt = 0;
  #seq = 0;
  /** Whether the displayed text belongs to an earlier message. */
  #isOld = false;
  #isEmpty = true;

  constructor(live: Live) {
    this.#live = live;
  }

  add({ history_version, generation_attempt, first_seq, events }: PartBatch): void {
    const isOlder = history_version < this.#history;
    const isSame = history_version === this.#history;
    if (isOlder || (isSame && generation_attempt < this.#attempt)) return;
    if (!isSame || generation_attempt > this.#attempt) {
      this.#history = history_version;
      this.#attempt = generation_attempt;
      this.#seq = 0;
      this.#isOld = !this.#isEmpty;
    }
    const seenCount = Math.max(0, this.#seq + 1 - first_seq);
    for (const event of events.slice(seenCount)) this.#writeText(findText(event));
    this.#seq = Math.max(this.#seq, first_seq + events.length - 1);
  }

  #writeText(text: string): void {
    if (text === "") return;
    if (this.#isOld) this.#live.reset();
    this.#isOld = false;
    this.#isEmpty = false;
    this.#live.write(text);
  }
}

/** Returns the text of a stream event; empty for other kinds of parts. */
const findText = (event: string): string => {
  if (!event.includes('"type":"text"')) return "";
  const { message_part } = JSON.parse(event) as { message_part: { part: { type: string; text?: string } } };
  return message_part.part.type === "text" ? (message_part.part.text ?? "") : "";
};
