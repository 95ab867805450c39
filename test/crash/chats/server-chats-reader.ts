// A follower of one chat that is disconnected with its server and reconnects: with its cursor, or from the beginning if messages may have
// left the history in the meantime. It reports violated guarantees, and ends with the state of the database.
import type { ChatMessage, QueuedMessage } from "#schema/chats/chat.ts";
import type { ChatEvent } from "#schema/chats/chat-event.ts";
import type { Client, ClientSocket } from "#src/client.ts";
import { readEvents } from "#test/support/net/event-reader.ts";
import { PAUSE_MS } from "../oracle/calls.ts";

type Part = Extract<ChatEvent, { type: "message_part" }>["message_part"];

/** The events received by all followers of a chat, by ID: an ID never has two meanings, no matter which server has sent it. */
export class ChatLedger {
  readonly problems: string[] = [];
  readonly #meanings = new Map<string, string>();

  requireSame(id: string, value: unknown): void {
    const current = JSON.stringify(value);
    const earlier = this.#meanings.get(id);
    if (earlier === undefined) this.#meanings.set(id, current);
    else if (earlier !== current)
      this.problems.push(`${id} was ${earlier.slice(0, 200)} and is ${current.slice(0, 200)}`);
  }
}

export type ReaderOptions = {
  readonly client: Client;
  readonly chat: string;
  readonly ledger: ChatLedger;
  /** True if it reconnects with its cursor; false if it starts from the beginning. */
  readonly resumes: boolean;
  readonly transport: "websocket" | "events";
};

export class ChatReader {
  readonly messages = new Map<number, ChatMessage>();
  queue: QueuedMessage[] = [];
  status = "";
  connections = 0;
  readonly options: ReaderOptions;
  #buffer: [number, number] | undefined;
  #seq = 0;
  /** The message IDs received on this connection, and the last ID that it must skip. */
  #receivedIds = new Set<number>();
  #afterId = 0;
  #cut: (() => void) | undefined;
  #stopped = false;

  constructor(options: ReaderOptions) {
    this.options = options;
  }

  /** Follows until `stop`, reconnecting as often as needed. */
  async run(): Promise<void> {
    while (!this.#stopped) {
      this.#begin();
      const follow = this.options.transport === "events" ? this.#followEvents() : this.#followSocket();
      // The server is down, or the connection broke within a frame.
      await follow.catch(() => {});
      if (!this.#stopped) await Bun.sleep(PAUSE_MS);
    }
  }

  /** Breaks the connection, as a network would. */
  drop(): void {
    this.#cut?.();
  }

  stop(): void {
    this.#stopped = true;
    this.drop();
  }

  get history(): ChatMessage[] {
    return [...this.messages.values()].sort((a, b) => a.id - b.id);
  }

  get #path(): string {
    return `/api/v2/chats/${this.options.chat}/stream?after_id=${this.#afterId}`;
  }

  #begin(): void {
    if (!this.options.resumes) this.messages.clear();
    this.#afterId = Math.max(0, ...this.messages.keys());
    this.#receivedIds.clear();
    this.#buffer = undefined;
    this.status = "";
  }

  async #followSocket(): Promise<void> {
    const socket: ClientSocket = await this.options.client.socket(this.#path);
    this.#cut = () => socket[Symbol.dispose]();
    this.connections += 1;
    for await (const frame of socket) this.#handleEvents(JSON.parse(frame as string) as ChatEvent[]);
  }

  async #followEvents(): Promise<void> {
    const abort = new AbortController();
    this.#cut = () => abort.abort();
    const headers = { accept: "text/event-stream" };
    const response = await this.options.client.fetch("GET", this.#path, undefined, { headers, signal: abort.signal });
    this.connections += 1;
    for await (const { data } of readEvents<ChatEvent[]>(response)) if (data) this.#handleEvents(data);
  }

  #handleEvents(events: readonly ChatEvent[]): void {
    for (const event of events) this.#apply(event);
  }

  #report(problem: string): void {
    this.options.ledger.problems.push(`a follower by ${this.options.transport}: ${problem}`);
  }

  #apply(event: ChatEvent): void {
    switch (event.type) {
      case "message":
        this.#applyMessage(event.message);
        break;
      case "history_reset":
        this.messages.clear();
        this.#receivedIds.clear();
        this.#afterId = 0;
        break;
      case "queue_update":
        for (const { id, content } of event.queued_messages) this.options.ledger.requireSame(`queued ${id}`, content);
        this.queue = event.queued_messages;
        break;
      case "status":
        this.status = event.status.status;
        break;
      case "preview_reset":
        this.#buffer = undefined;
        break;
      case "message_part":
        this.#applyPart(event.message_part);
    }
  }

  #applyMessage(message: ChatMessage): void {
    if (this.#receivedIds.has(message.id)) this.#report(`message ${message.id} was sent twice`);
    if (message.id <= this.#afterId)
      this.#report(`message ${message.id} was sent, though it is not after ${this.#afterId}`);
    this.#receivedIds.add(message.id);
    this.options.ledger.requireSame(`message ${message.id}`, message);
    this.messages.set(message.id, message);
  }

  #applyPart({ history_version, generation_attempt, seq, part }: Part): void {
    const [history, attempt] = this.#buffer ?? [history_version, generation_attempt];
    if (history !== history_version || attempt !== generation_attempt)
      this.#report("a part has no preview_reset before it");
    if (!this.#buffer) this.#seq = 0;
    this.#buffer = [history_version, generation_attempt];
    this.#seq += 1;
    if (seq !== this.#seq) this.#report(`part ${seq} instead of ${this.#seq}`);
    this.options.ledger.requireSame(`part ${history_version}/${generation_attempt}/${seq}`, part);
  }
}
