// People who write to one chat while its server dies, and a record of each message's result: acknowledged, refused or unknown. In an
// orderly chat, nothing is edited, promoted or deleted, so every message must exist in order.
import type { ChatMessage, CreatedMessage, MessagePage } from "#schema/chats/chat.ts";
import type { Client } from "#src/client.ts";
import { type CallResult, call, PAUSE_MS } from "../oracle/calls.ts";

/** One message of a person. */
export type SentMessage = {
  readonly text: string;
  readonly person: string;
  readonly startedAt: number;
  outcome: CallResult<unknown>["outcome"] | "open";
  /** The ID that was returned for the message, in the history or in the queue. */
  id?: number;
  queued?: number;
};

/** The record of one chat. */
export class ChatBook {
  readonly id: string;
  readonly isOrderly: boolean;
  readonly sent: SentMessage[] = [];
  /** Queue IDs that a person tried to delete, and whether that was acknowledged. */
  readonly deleted = new Map<number, boolean>();
  /** Number of edits in progress, and the end of the last edit that may have emptied the queue. */
  editsInProgress = 0;
  lastEditAt = 0;
  commands = 0;

  constructor(id: string, isOrderly: boolean) {
    this.id = id;
    this.isOrderly = isOrderly;
  }

  get path(): string {
    return `/api/v2/chats/${this.id}`;
  }

  /** Returns true if the message was queued and may have been removed with the queue. */
  canBeMissing({ queued, startedAt }: SentMessage): boolean {
    return (
      queued !== undefined && (this.editsInProgress > 0 || this.lastEditAt >= startedAt || this.deleted.has(queued))
    );
  }
}

const WAIT_TIMEOUT_MS = 30_000;

export class ChatPerson {
  readonly problems: string[] = [];
  readonly #client: Client;
  readonly #book: ChatBook;
  readonly #name: string;
  readonly #random: () => number;
  readonly #onAnswer: () => void;
  #count = 0;
  #stopped = false;

  constructor(client: Client, book: ChatBook, name: string, random: () => number, onAnswer: () => void) {
    this.#client = client;
    this.#book = book;
    this.#name = name;
    this.#random = random;
    this.#onAnswer = onAnswer;
  }

  async run(): Promise<void> {
    while (!this.#stopped) {
      await this.#command();
      this.#book.commands += 1;
      this.#onAnswer();
      await Bun.sleep(this.#randomBelow(2 * PAUSE_MS));
    }
  }

  stop(): void {
    this.#stopped = true;
  }

  #randomBelow(n: number): number {
    return Math.floor(this.#random() * n);
  }

  #command(): Promise<unknown> {
    const dice = this.#randomBelow(this.#book.isOrderly ? 20 : 26);
    if (dice < 13) return this.#send();
    if (dice < 15) return this.#call("POST", "/interrupt");
    if (dice < 17) return this.#answerCalls();
    if (dice < 20) return this.#call("PATCH", "", { archived: dice === 17 });
    return dice < 22 ? this.#edit() : this.#changeQueue(dice < 24);
  }

  /** Any 4xx is possible, because someone else may have been first. While the server lives, a server error is a problem. */
  async #call<T>(
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<CallResult<T>> {
    const options = { problems: this.problems, ...(headers ? { headers } : {}) };
    const result = await call<T>(this.#client, method, this.#book.path + path, body, options);
    const status = result.outcome === "unknown" ? result.status : undefined;
    if (status !== undefined && status !== 503) this.problems.push(`${method} ${path}: ${status}`);
    return result;
  }

  #recordMessage(): SentMessage {
    const text = `<${this.#name}-${this.#count++}>`;
    const entry: SentMessage = { text, person: this.#name, startedAt: performance.now(), outcome: "open" };
    this.#book.sent.push(entry);
    return entry;
  }

  async #send(): Promise<void> {
    const entry = this.#recordMessage();
    const busy_behavior = this.#randomBelow(5) === 0 ? "interrupt" : "queue";
    const body = { content: [{ type: "text", text: entry.text }], busy_behavior };
    const key = this.#randomBelow(2) === 0 ? { "Idempotency-Key": entry.text } : undefined;
    const deadline = performance.now() + WAIT_TIMEOUT_MS;
    let result = await this.#call<CreatedMessage>("POST", "/messages", body, key);
    // With a key, the request may be retried until it is answered, even by the next server.
    while (key && result.outcome === "unknown" && performance.now() < deadline && !this.#stopped) {
      await Bun.sleep(PAUSE_MS);
      result = await this.#call<CreatedMessage>("POST", "/messages", body, key);
    }
    if (result.outcome === "acknowledged") {
      const { message, queued_message } = result.answer;
      if (message) entry.id = message.id;
      if (queued_message) entry.queued = queued_message.id;
    }
    entry.outcome = result.outcome;
  }

  async #loadPage(): Promise<MessagePage | undefined> {
    const result = await this.#call<MessagePage>("GET", "/messages?limit=50");
    return result.outcome === "acknowledged" ? result.answer : undefined;
  }

  async #answerCalls(): Promise<void> {
    const results = listOpenCalls((await this.#loadPage())?.messages ?? []).map((tool_call_id) => ({
      tool_call_id,
      output: 1,
    }));
    await this.#call("POST", "/tool-results", { results });
  }

  async #edit(): Promise<void> {
    const users = ((await this.#loadPage())?.messages ?? []).filter(({ role }) => role === "user").slice(0, 6);
    const target = users[this.#randomBelow(users.length)];
    if (!target) return;
    const entry = this.#recordMessage();
    this.#book.editsInProgress += 1;
    const body = { content: [{ type: "text", text: entry.text }] };
    const result = await this.#call<{ message: ChatMessage }>("PATCH", `/messages/${target.id}`, body);
    if (result.outcome === "acknowledged") entry.id = result.answer.message.id;
    entry.outcome = result.outcome;
    this.#book.editsInProgress -= 1;
    if (result.outcome !== "refused") this.#book.lastEditAt = performance.now();
  }

  async #changeQueue(isDeletion: boolean): Promise<void> {
    const queue = (await this.#loadPage())?.queued_messages ?? [];
    const id = queue[this.#randomBelow(queue.length)]?.id;
    if (id === undefined) return;
    if (!isDeletion) return void (await this.#call("POST", `/queue/${id}/promote`));
    // Recorded before the request, because the server may die during it.
    const { deleted } = this.#book;
    if (!deleted.has(id)) deleted.set(id, false);
    const result = await this.#call("DELETE", `/queue/${id}`);
    if (result.outcome === "acknowledged") deleted.set(id, true);
  }
}

/** Returns tool calls without a result in this page. */
export const listOpenCalls = (messages: readonly ChatMessage[]): string[] => {
  const listCallIds = (role: string, type: string): string[] =>
    messages
      .filter((message) => message.role === role)
      .flatMap(({ content }) => content.flatMap((part) => (part.type === type ? [part.tool_call_id ?? ""] : [])));
  const answeredCallIds = new Set(listCallIds("tool", "tool-result"));
  return listCallIds("assistant", "tool-call").filter((id) => !answeredCallIds.has(id));
};
