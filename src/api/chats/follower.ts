// One follower of a chat's stream: sends the stored snapshot, the parts of the current turn, and then every change exactly once and in
// order (rules CH-20 to CH-26). It subscribes before it reads; events that arrive during the read wait in a bounded queue and are
// deduplicated by their numbers.

import type { ChatNotice } from "#actors/chat/messages.ts";
import type { PartBatch } from "#actors/chat/turn/stream-buffer.ts";
import { log } from "#base/log.ts";
import type { ChatAccessRow } from "#db/chats/chats.ts";
import { isFullPage, listMessages } from "#db/chats/messages.ts";
import { presentMessage } from "#domain/chats/present.ts";
import type { ChatEvent } from "#schema/chats/chat-event.ts";
import type { ApiContext } from "../context.ts";
import { listStateEvents, NOTHING_SYNCED, type SyncState } from "./sync.ts";

export interface Sink {
  send(frame: string): void;
  /** Resolves with true when the client can take more, and with false when it has disconnected. */
  waitForRoom(): Promise<boolean>;
  end(why: "failed" | "behind"): void;
}

/** Options of a follower: messages after a cursor, upstream's ID format, and the reader. */
export type FollowOptions = { readonly after_id: number; readonly compat: boolean; readonly user_id: string };

/** Maximum events per frame (facts/chats 2.1). */
const MAX_FRAME_EVENTS = 256;
/** Maximum notices and batches that wait while history is read. */
const MAX_QUEUED_ITEMS = 2_048;

/** State that is not part of the chat itself. */
type ExternalState = { readonly warnings: readonly string[]; readonly isWaiting: boolean };

const WAITING_WARNING = "The chat waits for a free slot: too many chats are running a turn.";

type QueueItem =
  | { readonly notice: ChatNotice }
  | { readonly batch: PartBatch }
  | { readonly warnings: readonly string[] }
  | { readonly isWaiting: boolean };

/** Cache of the last encoded batch. All followers are notified of one batch before the next, so one entry is enough. */
let lastFrame: { batch: PartBatch; frame: string } | undefined;
/** Encodes a batch once for all followers. */
const toFrame = (batch: PartBatch): string => {
  if (lastFrame?.batch !== batch) lastFrame = { batch, frame: `[${batch.events.join(",")}]` };
  return lastFrame.frame;
};

/** Converts a live part to the format of upstream clients. */
const flattenIds = (event: string): string => {
  if (!event.includes('"valid":true}')) return event;
  const parsed = JSON.parse(event) as { message_part: { part: Record<string, unknown> } };
  const { part } = parsed.message_part;
  for (const name of ["file_id", "mcp_server_config_id"]) {
    const id = part[name] as { uuid: string } | undefined;
    if (id) part[name] = id.uuid;
  }
  return JSON.stringify(parsed);
};

export class ChatFollower {
  readonly #ctx: ApiContext;
  readonly #chat: ChatAccessRow;
  readonly #sink: Sink;
  readonly #options: FollowOptions;
  readonly #queue: QueueItem[] = [];
  #unsubscribes: (() => void)[] = [];
  #synced: SyncState = NOTHING_SYNCED;
  #snapshotVersion = 0;
  #nextSeq = 1;
  #external: ExternalState = { warnings: [], isWaiting: false };
  #isBusy = true;
  #isOver = false;

  constructor(ctx: ApiContext, chat: ChatAccessRow, requested: FollowOptions, sink: Sink) {
    this.#ctx = ctx;
    this.#chat = chat;
    this.#options = requested;
    this.#sink = sink;
  }

  start(): void {
    const { topics } = this.#ctx;
    this.#unsubscribes = [
      topics.subscribe("chat", this.#chat.id, (notice) => this.#enqueue({ notice })),
      topics.subscribe("chat_parts", this.#chat.id, (batch) => this.#enqueue({ batch })),
      topics.subscribe("chat_warnings", this.#chat.id, ({ warnings }) => this.#enqueue({ warnings })),
      topics.subscribe("chat_waits", this.#chat.id, ({ isWaiting }) => this.#enqueue({ isWaiting })),
    ];
    this.#begin().catch((error) => this.#fail(error));
  }

  stop(): void {
    this.#isOver = true;
    for (const unsubscribe of this.#unsubscribes.splice(0)) unsubscribe();
    this.#queue.length = 0;
  }

  async #begin(): Promise<void> {
    const { picture, buffer } = await this.#ctx.chats.ask(this.#chat.id, "snapshot", {});
    this.#snapshotVersion = picture.snapshot_version;
    await this.#sendHistory(this.#options.after_id, picture.snapshot_version);
    this.#sendState(picture);
    this.#sendExternal({
      warnings: this.#ctx.warnings.list(this.#chat.id),
      isWaiting: this.#ctx.generations.isWaiting(this.#chat.id),
    });
    if (buffer) this.#sendParts(buffer);
    this.#isBusy = false;
    this.#drain();
  }

  #enqueue(item: QueueItem): void {
    if (this.#isOver) return;
    if (this.#queue.length < MAX_QUEUED_ITEMS) this.#queue.push(item);
    else this.#giveUp("behind");
    if (!this.#isBusy) this.#drain();
  }

  #drain(): void {
    for (let item = this.#queue.shift(); item && !this.#isOver; item = this.#queue.shift()) {
      if ("batch" in item) this.#sendParts(item.batch);
      else if ("warnings" in item || "isWaiting" in item) this.#sendExternal(item);
      else if (item.notice.snapshot_version > this.#snapshotVersion) {
        const { notice } = item;
        this.#snapshotVersion = notice.snapshot_version;
        if (notice.reset) {
          this.#isBusy = true;
          this.#sendAll(notice).catch((error) => this.#fail(error));
          return;
        }
        this.#send(notice.messages.map((message) => this.#toMessageEvent(message)));
        this.#sendState(notice);
      }
    }
  }

  /** Sends the whole history again, because something was removed from it. */
  async #sendAll(notice: ChatNotice): Promise<void> {
    this.#send([{ type: "history_reset", chat_id: this.#chat.id }]);
    await this.#sendHistory(0, notice.snapshot_version);
    this.#sendState(notice);
    this.#isBusy = false;
    this.#drain();
  }

  /** Sends the messages after `after` as of that snapshot, page by page with backpressure. */
  async #sendHistory(after: number, revision: number): Promise<void> {
    for (let cursor = after; !this.#isOver; ) {
      const page = { chat: this.#chat.key, after: cursor, before: Number.MAX_SAFE_INTEGER };
      const { rows, hasRoom } = await this.#sendPage({ ...page, revision, limit: MAX_FRAME_EVENTS });
      const last = rows.at(-1);
      if (!last || !hasRoom || (rows.length < MAX_FRAME_EVENTS && !isFullPage(rows))) return;
      cursor = last.id;
    }
  }

  /** Sends one page, and holds its slot until the client can take more. */
  async #sendPage(page: Parameters<typeof listMessages>[0]) {
    const releasePage = await this.#ctx.requests.pages.take(this.#options.user_id);
    let bytes = 0;
    try {
      const rows = this.#isOver ? [] : await this.#ctx.store.scan(listMessages(page));
      bytes = this.#send(rows.map((row) => this.#toMessageEvent(row)));
      return { rows, hasRoom: await this.#sink.waitForRoom() };
    } finally {
      releasePage(bytes);
    }
  }

  #toMessageEvent(message: Parameters<typeof presentMessage>[1]): ChatEvent {
    const chat_id = this.#chat.id;
    return { type: "message", chat_id, message: presentMessage(chat_id, message, this.#options.compat) };
  }

  #sendState(state: Parameters<typeof listStateEvents>[2]): void {
    const { history_version, generation_attempt } = this.#synced;
    const { events, synced } = listStateEvents(this.#chat.id, this.#synced, state, this.#options.compat);
    if (synced.history_version !== history_version || synced.generation_attempt !== generation_attempt) {
      this.#nextSeq = 1;
    }
    this.#synced = synced;
    this.#send(events);
  }

  /** Sends warnings about the turn and whether it waits for a slot, each time one of them changes. */
  #sendExternal(changes: Partial<ExternalState>): void {
    const before = this.#external;
    this.#external = { ...before, ...changes };
    const { warnings, isWaiting } = this.#external;
    if (before.isWaiting === isWaiting && before.warnings.join("\n") === warnings.join("\n")) return;
    const status = {
      status: this.#synced.status,
      warnings: isWaiting ? [...warnings, WAITING_WARNING] : warnings,
      ...(before.isWaiting === isWaiting ? {} : { queued_for_capacity: isWaiting }),
    };
    this.#send([{ type: "status", chat_id: this.#chat.id, status }]);
  }

  /** Skips parts of other attempts and parts that were already sent. */
  #sendParts(batch: PartBatch): void {
    const { history_version, generation_attempt } = this.#synced;
    if (batch.history_version !== history_version || batch.generation_attempt !== generation_attempt) return;
    const skipCount = this.#nextSeq - batch.first_seq;
    if (skipCount < 0) this.#fail(new Error(`parts ${this.#nextSeq} to ${batch.first_seq} are missing`));
    if (skipCount < 0 || skipCount >= batch.events.length) return;
    this.#nextSeq = batch.first_seq + batch.events.length;
    if (skipCount === 0 && batch.events.length <= MAX_FRAME_EVENTS && !this.#options.compat) {
      this.#sink.send(toFrame(batch));
      return;
    }
    for (let start = skipCount; start < batch.events.length; start += MAX_FRAME_EVENTS) {
      const events = batch.events.slice(start, start + MAX_FRAME_EVENTS);
      this.#sink.send(`[${(this.#options.compat ? events.map(flattenIds) : events).join(",")}]`);
    }
  }

  /** Sends the events in frames and returns the number of characters sent. */
  #send(events: readonly ChatEvent[]): number {
    let charCount = 0;
    for (let start = 0; start < events.length && !this.#isOver; start += MAX_FRAME_EVENTS) {
      const frame = JSON.stringify(events.slice(start, start + MAX_FRAME_EVENTS));
      charCount += frame.length;
      this.#sink.send(frame);
    }
    return charCount;
  }

  #fail(error: unknown): void {
    if (this.#isOver) return;
    log("chats").error("following chat {id} failed: {error}", { id: this.#chat.id, error });
    const failure = {
      kind: "generic",
      message: "The chat could not be read. Connect again.",
      retryable: true,
    } as const;
    this.#send([{ type: "error", chat_id: this.#chat.id, error: failure }]);
    this.#giveUp("failed");
  }

  #giveUp(why: "failed" | "behind"): void {
    this.stop();
    this.#sink.end(why);
  }
}
