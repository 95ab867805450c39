// The visible state of a chat, built from the events of its stream (facts/chats 2). Pure.
import type { ChatMessage, QueuedMessage } from "#schema/chats/chat.ts";
import type { ActionRequired, ChatEvent } from "#schema/chats/chat-event.ts";
import type { ChatMessagePart } from "#schema/chats/chat-part.ts";
import type { ChatStatus } from "#schema/chats/chat-status.ts";

type EventOf<T extends ChatEvent["type"]> = Extract<ChatEvent, { type: T }>;

/** Live output of a tool: `text` grows, and `part` is set when the tool has finished. */
export type LiveResult = { readonly text: string; readonly part: ChatMessagePart | undefined };

export type Picture = {
  /** Sorted by ID, oldest first. */
  readonly messages: readonly ChatMessage[];
  readonly queue: readonly QueuedMessage[];
  /** Undefined until the stream has sent it. */
  readonly status: ChatStatus | undefined;
  readonly warnings: readonly string[];
  readonly waitsForSlot: boolean;
  readonly error: EventOf<"error">["error"] | undefined;
  readonly asked: ActionRequired | undefined;
  readonly retry: EventOf<"retry">["retry"] | undefined;
  /** The unfinished answer, with its deltas joined. */
  readonly live: readonly ChatMessagePart[];
  /** By tool call ID. */
  readonly liveResults: ReadonlyMap<string, LiveResult>;
  /** Number of turns that have ended since the chat is followed, including turns that began and ended within one frame. */
  readonly turns: number;
};

export const EMPTY: Picture = {
  messages: [],
  queue: [],
  status: undefined,
  warnings: [],
  waitsForSlot: false,
  error: undefined,
  asked: undefined,
  retry: undefined,
  live: [],
  liveResults: new Map(),
  turns: 0,
};

const NO_LIVE = { live: EMPTY.live, liveResults: EMPTY.liveResults };

/** Merges messages by ID. A message with a known ID replaces the old one. */
export const withMessages = (
  previous: readonly ChatMessage[],
  more: readonly ChatMessage[],
): readonly ChatMessage[] => {
  if (more.length === 0) return previous;
  const last = previous.at(-1)?.id ?? 0;
  if (more.every(({ id }, at) => id > (more[at - 1]?.id ?? last))) return [...previous, ...more];
  const all = new Map([...previous, ...more].map((one) => [one.id, one]));
  return [...all.values()].sort((a, b) => a.id - b.id);
};

/**
 * Removes messages that left the history during a disconnect: an edit removes everything from one message on. `page` is the newest page in
 * ascending order; `hasMore` means that older messages exist.
 */
export const reconcile = (
  previous: readonly ChatMessage[],
  page: readonly ChatMessage[],
  hasMore: boolean,
): readonly ChatMessage[] => {
  const first = page[0]?.id ?? Number.POSITIVE_INFINITY;
  const isApart = hasMore && (previous.at(-1)?.id ?? 0) < first;
  if (isApart) return page;
  return withMessages(hasMore ? previous.filter(({ id }) => id < first) : [], page);
};

/** True if no turn is running or pending: the next turn begins with the next message. */
export const isAtRest = (status: ChatStatus | undefined): boolean => status === "waiting" || status === "error";

/** Returns the picture after one frame of the stream. */
export const applyFrame = (picture: Picture, frame: readonly ChatEvent[]): Picture => {
  const next = applyEvents(picture, frame);
  // A short turn is never seen running; only its results appear in a frame.
  const hasChanged =
    frame.some(({ type }) => type === "message" || type === "history_reset") ||
    (picture.status !== undefined && picture.status !== next.status);
  return hasChanged && isAtRest(next.status) ? { ...next, turns: next.turns + 1 } : next;
};

const applyEvents = (picture: Picture, frame: readonly ChatEvent[]): Picture => {
  let next = picture;
  let messages: ChatMessage[] = [];
  let isRetryNew = false;
  const flushMessages = (): void => {
    if (messages.length === 0) return;
    // The history has grown, so the unfinished answer is either in it or discarded.
    next = { ...next, ...NO_LIVE, messages: withMessages(next.messages, messages) };
    messages = [];
  };
  for (const event of frame) {
    if (event.type === "message") {
      messages.push(event.message);
      continue;
    }
    flushMessages();
    isRetryNew ||= event.type === "retry";
    next = applyEvent(next, event, isRetryNew);
  }
  flushMessages();
  return next;
};

const applyEvent = (picture: Picture, event: Exclude<ChatEvent, { type: "message" }>, isRetryNew: boolean): Picture => {
  switch (event.type) {
    case "history_reset":
      return { ...picture, ...NO_LIVE, messages: [] };
    case "preview_reset":
      return { ...picture, ...NO_LIVE, retry: isRetryNew ? picture.retry : undefined };
    case "queue_update":
      return { ...picture, queue: event.queued_messages };
    case "retry":
      return { ...picture, retry: event.retry };
    case "error":
      return { ...picture, error: event.error };
    case "action_required":
      return { ...picture, asked: event.action_required };
    case "status":
      return withStatus(picture, event.status);
    case "message_part":
      return withPart({ ...picture, retry: undefined }, event.message_part.part);
  }
};

const withStatus = (picture: Picture, event: EventOf<"status">["status"]): Picture => {
  const status = event.status as ChatStatus;
  return {
    ...picture,
    status,
    error: status === "error" ? picture.error : undefined,
    asked: status === "requires_action" ? picture.asked : undefined,
    retry: status === "running" ? picture.retry : undefined,
    warnings: event.warnings ?? picture.warnings,
    waitsForSlot: status === "running" && (event.queued_for_capacity ?? picture.waitsForSlot),
  };
};

const withPart = (picture: Picture, part: ChatMessagePart): Picture => {
  if (part.type === "tool-result" && part.tool_call_id !== undefined)
    return withResult(picture, part.tool_call_id, part);
  const { live } = picture;
  const last = live.at(-1);
  if ((part.type === "text" || part.type === "reasoning") && last?.type === part.type) {
    const text = (last.text ?? "") + (part.text ?? "");
    return { ...picture, live: live.with(-1, { ...last, ...part, created_at: last.created_at, text }) };
  }
  const at = part.type === "tool-call" ? live.findIndex((one) => one.tool_call_id === part.tool_call_id) : -1;
  if (at < 0) return { ...picture, live: [...live, part] };
  const args_delta = (live[at]?.args_delta ?? "") + (part.args_delta ?? "");
  return { ...picture, live: live.with(at, { ...live[at], ...part, args_delta }) };
};

/** Very long output is cut at the start, because users watch its end. */
const MAX_LIVE_CHARS = 100_000;

const withResult = (picture: Picture, id: string, part: ChatMessagePart): Picture => {
  const previous = picture.liveResults.get(id);
  const before = part.result_reset ? "" : (previous?.text ?? "");
  const text = (before + (part.result_delta ?? "")).slice(-MAX_LIVE_CHARS);
  const finishedPart = "result" in part ? part : previous?.part;
  return { ...picture, liveResults: new Map(picture.liveResults).set(id, { text, part: finishedPart }) };
};

/** Returns the results of finished calls, by call ID. */
export const collectResults = (messages: readonly ChatMessage[]): ReadonlyMap<string, ChatMessagePart> => {
  const found = new Map<string, ChatMessagePart>();
  for (const { content } of messages) {
    for (const part of content) {
      if (part.type === "tool-result" && part.tool_call_id !== undefined) found.set(part.tool_call_id, part);
    }
  }
  return found;
};

/** Returns the tokens of the last call's prompt and answer; 0 if none were counted since the last compaction. */
export const countContextTokens = (messages: Picture["messages"]): number => {
  for (const { usage, content } of messages.toReversed()) {
    if (content.some(({ tool_name }) => tool_name === "chat_summarized" || tool_name === "chat_cleared")) return 0;
    if (!usage) continue;
    const { input_tokens = 0, cache_read_tokens = 0, cache_creation_tokens = 0, output_tokens = 0 } = usage;
    return input_tokens + cache_read_tokens + cache_creation_tokens + output_tokens;
  }
  return 0;
};

/** Returns the size of the context, if a coding agent has reported it. */
export const findContextLimit = (messages: Picture["messages"]): number | undefined =>
  messages.findLast(({ usage }) => usage?.context_limit !== undefined)?.usage?.context_limit;
