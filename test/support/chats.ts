// Chats over the public API: a server with a scripted model, and followers that assemble events like a real client and throw when a
// guarantee is violated.
import type { Chat, ChatMessage, CreatedMessage, MessagePage, QueuedMessage } from "#schema/chats/chat.ts";
import type { ChatEvent } from "#schema/chats/chat-event.ts";
import { Client, type ClientSocket } from "#src/client.ts";
import { ScriptedModels } from "./models/scripted-models.ts";
import { readEvents } from "./net/event-reader.ts";
import { seedUser } from "./seed.ts";
import { startTestServer, type TestServerOptions } from "./server.ts";

export const openChatWorld = async (options: TestServerOptions = {}) => {
  const models = new ScriptedModels();
  const server = await startTestServer({ models, ...options });
  const { user_id, token, organization_id } = await seedUser(server);
  const owner = new Client(server.url, token);
  return {
    server,
    models,
    owner,
    user_id,
    organization_id,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
};
export type ChatWorld = Awaited<ReturnType<typeof openChatWorld>>;

type Speaker = Pick<ChatWorld, "owner" | "organization_id">;

export const toTextContent = (text: string) => [{ type: "text", text }];

/** Creates a chat of the world's owner, with additional body members. */
export const createChat = (world: Speaker, text = "hello", fields: Record<string, unknown> = {}): Promise<Chat> =>
  world.owner.post<Chat>("/api/v2/chats", {
    organization_id: world.organization_id,
    content: toTextContent(text),
    ...fields,
  });

export const sendMessage = (
  world: Pick<ChatWorld, "owner">,
  id: string,
  text: string,
  fields: Record<string, unknown> = {},
): Promise<CreatedMessage> =>
  world.owner.post(`/api/v2/chats/${id}/messages`, { content: toTextContent(text), ...fields });

export const loadHistory = async (client: Client, id: string): Promise<string[]> => {
  const { messages } = await client.get<MessagePage>(`/api/v2/chats/${id}/messages?limit=200`);
  return messages.reverse().map(formatMessage);
};

export const formatMessage = ({ role, content }: ChatMessage): string =>
  `${role}: ${content.map(({ type, text }) => text ?? type).join("")}`;

type EventConnection = Pick<ClientSocket, "json" | "close" | "closed" | "send"> & Disposable;

/** Reads server-sent events as they arrive, so that a slow test never delays the server. */
class EventSource implements EventConnection {
  readonly closed: Promise<{ code: number; reason: string }>;
  readonly close: () => void;
  readonly #frames: unknown[] = [];
  #ended = false;
  #wake: (() => void) | undefined;

  constructor(response: Response, close: () => void) {
    this.close = close;
    this.closed = this.#read(response);
  }

  async json<T>(): Promise<T> {
    while (this.#frames.length === 0) {
      if (this.#ended) throw new Error("the stream has ended");
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    return this.#frames.shift() as T;
  }

  send(): void {
    throw new Error("an event stream cannot send messages");
  }

  [Symbol.dispose](): void {
    this.close();
  }

  async #read(response: Response): Promise<{ code: number; reason: string }> {
    let reason = "";
    try {
      for await (const { data } of readEvents(response)) {
        if (data === undefined) continue;
        this.#frames.push(data);
        this.#wake?.();
      }
    } catch (error) {
      reason = String(error);
    }
    this.#ended = true;
    this.#wake?.();
    return { code: 0, reason };
  }
}

/** A client of a chat's stream that keeps the state that a real client would have. */
export class Follower implements Disposable {
  readonly events: ChatEvent[] = [];
  readonly messages = new Map<number, ChatMessage>();
  queue: QueuedMessage[] = [];
  status = "";
  /** Text of the unfinished message. */
  preview = "";
  readonly #socket: EventConnection;
  #buffer = "";
  #seq = 0;

  private constructor(socket: EventConnection) {
    this.#socket = socket;
  }

  static async open(client: Client, id: string, after?: number): Promise<Follower> {
    const query = after === undefined ? "" : `?after_id=${after}`;
    return new Follower(await client.socket(`/api/v2/chats/${id}/stream${query}`));
  }

  /** Follows by server-sent events. */
  static async openEventStream(client: Client, id: string, after = 0): Promise<Follower> {
    const abort = new AbortController();
    const options = { headers: { accept: "text/event-stream" }, signal: abort.signal };
    const response = await client.fetch("GET", `/api/v2/chats/${id}/stream?after_id=${after}`, undefined, options);
    return new Follower(new EventSource(response, () => abort.abort()));
  }

  get history(): string[] {
    return [...this.messages.values()].sort((a, b) => a.id - b.id).map(formatMessage);
  }

  get closed(): Promise<{ code: number; reason: string }> {
    return this.#socket.closed;
  }

  close(): void {
    this.#socket.close();
  }

  send(text: string): void {
    this.#socket.send(text);
  }

  [Symbol.dispose](): void {
    this.#socket[Symbol.dispose]();
  }

  /** Reads frames until the condition holds. */
  async until(isReached: (follower: this) => boolean): Promise<this> {
    while (!isReached(this)) {
      const frame = await this.#socket.json<ChatEvent[]>();
      if (!Array.isArray(frame) || frame.length > 256) throw new Error("a frame must be at most 256 events");
      for (const event of frame) this.#apply(event);
    }
    return this;
  }

  #apply(event: ChatEvent): void {
    this.events.push(event);
    switch (event.type) {
      case "message":
        this.messages.set(event.message.id, event.message);
        break;
      case "history_reset":
        this.messages.clear();
        break;
      case "queue_update":
        this.queue = event.queued_messages;
        break;
      case "status":
        this.status = event.status.status;
        break;
      case "preview_reset":
        this.preview = "";
        this.#buffer = "";
        break;
      case "message_part":
        this.#applyPart(event.message_part);
    }
  }

  #applyPart(message_part: Extract<ChatEvent, { type: "message_part" }>["message_part"]): void {
    const { history_version, generation_attempt, seq, part } = message_part;
    const buffer = `${history_version}/${generation_attempt}`;
    if (this.#buffer === "") this.#seq = 0;
    else if (buffer !== this.#buffer) throw new Error(`part of ${buffer} without a preview_reset`);
    this.#buffer = buffer;
    this.#seq += 1;
    if (seq !== this.#seq) throw new Error(`received part ${seq} instead of ${this.#seq}`);
    this.preview += part.text ?? "";
  }
}
