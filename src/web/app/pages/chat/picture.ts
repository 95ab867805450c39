// The visible state of a chat, built from the events of its stream (facts/chats 2). Pure.
import type { ChatMessage, QueuedMessage } from "#schema/chats/chat.ts";
import type { ActionRequired, ChatEvent } from "#schema/chats/chat-event.ts";
import type { ChatMessagePart } from "#schema/chats/chat-part.ts";
import type { ChatStatus } from "#schema/chats/chat-status.ts";

type EventOf<T extends ChatEvent["type"]> = Extract<ChatEvent, { type: T }>;

/** Live output of a tool: `text` grows, and `part` is set when the tool has finished. */
export type LiveResult = { readonly text: string; readonly part: ChatMessagePart | undefined };

export type ChatState = {
  /** Sorted by ID, oldest first. */
  readonly messages: readonly ChatMessage[];
  readonly queue: readonly QueuedMessage[];
  /** Undefined until the stream has sent it. */
  readonly status: ChatStatus | undefined;
  readonly warnings: readonly string[];
  readonly waitsForSlot: boolean;
  readonly error: EventOf<"error">["error"] | undefined;
  readonly actionRequired: ActionRequired | undefined;
  readonly retry: EventOf<"retry">["retry"] | undefined;
  /** The unfinished answer, with its deltas joined. */
  readonly live: readonly ChatMessagePart[];
  /** By tool call ID. */
  readonly liveResults: ReadonlyMap<string, LiveResult>;
  /** Number of turns that have ended since the chat is followed, including turns that began and ended within one frame. */
  readonly turnCount: number;
};

export const EMPTY_STATE: ChatState = {
  messages: [],
  queue: [],
  status: undefined,
  warnings: [],
  waitsForSlot: false,
  error: undefined,
  actionRequired: undefined,
  retry: undefined,
  live: [],
  liveResults: new Map(),
  turnCount: 0,
};

const NO_LIVE_PARTS = { live: EMPTY_STATE.live, liveResults: EMPTY_STATE.liveResults };

/** Merges messages by ID. A message with a known ID replaces the old one. */
export const mergeMessages = (
  previous: readonly ChatMessage[],
  added: readonly ChatMessage[],
): readonly ChatMessage[] => {
  if (added.length === 0) return previous;
  const lastId = previous.at(-1)?.id ?? 0;
  if (added.every(({ id }, at) => id > (added[at - 1]?.id ?? lastId))) return [...previous, ...added];
  const byId = new Map([...previous, ...added].map((one) => [one.id, one]));
  return [...byId.values()].sort((a, b) => a.id - b.id);
};

/**
 * Removes messages that left the history during a disconnect: an edit removes everything from one message on. `page` is the newest page in
 * ascending order; `hasMore` means that older messages exist.
 */
export const reconcileMessages = (
  previous: readonly ChatMessage[],
  page: readonly ChatMessage[],
  hasMore: boolean,
): readonly ChatMessage[] => {
  const first = page[0]?.id ?? Number.POSITIVE_INFINITY;
  const hasGap = hasMore && (previous.at(-1)?.id ?? 0) < first;
  if (hasGap) return page;
  return mergeMessages(hasMore ? previous.filter(({ id }) => id < first) : [], page);
};

/** True if no turn is running or pending: the next turn begins with the next message. */
export const isIdle = (status: ChatStatus | undefined): boolean => status === "waiting" || status === "error";

/** Returns the picture after one frame of the stream. */
export const applyFrame = (state: ChatState, frame: readonly ChatEvent[]): ChatState => {
  const next = applyEvents(state, frame);
  // A short turn is never seen running; only its results appear in a frame.
  const hasChanged =
    frame.some(({ type }) => type === "message" || type === "history_reset") ||
    (state.status !== undefined && state.status !== next.status);
  return hasChanged && isIdle(next.status) ? { ...next, turnCount: next.turnCount + 1 } : next;
};

const applyEvents = (state: ChatState, frame: readonly ChatEvent[]): ChatState => {
  let next = state;
  let messages: ChatMessage[] = [];
  let hasNewRetry = false;
  const flushMessages = (): void => {
    if (messages.length === 0) return;
    // The history has grown, so the unfinished answer is either in it or discarded.
    next = { ...next, ...NO_LIVE_PARTS, messages: mergeMessages(next.messages, messages) };
    messages = [];
  };
  for (const event of frame) {
    if (event.type === "message") {
      messages.push(event.message);
      continue;
    }
    flushMessages();
    hasNewRetry ||= event.type === "retry";
    next = applyEvent(next, event, hasNewRetry);
  }
  flushMessages();
  return next;
};

const applyEvent = (
  state: ChatState,
  event: Exclude<ChatEvent, { type: "message" }>,
  hasNewRetry: boolean,
): ChatState => {
  switch (event.type) {
    case "history_reset":
      return { ...state, ...NO_LIVE_PARTS, messages: [] };
    case "preview_reset":
      return { ...state, ...NO_LIVE_PARTS, retry: hasNewRetry ? state.retry : undefined };
    case "queue_update":
      return { ...state, queue: event.queued_messages };
    case "retry":
      return { ...state, retry: event.retry };
    case "error":
      return { ...state, error: event.error };
    case "action_required":
      return { ...state, actionRequired: event.action_required };
    case "status":
      return applyStatus(state, event.status);
    case "message_part":
      return applyPart({ ...state, retry: undefined }, event.message_part.part);
  }
};

const applyStatus = (state: ChatState, event: EventOf<"status">["status"]): ChatState => {
  const status = event.status as ChatStatus;
  return {
    ...state,
    status,
    error: status === "error" ? state.error : undefined,
    actionRequired: status === "requires_action" ? state.actionRequired : undefined,
    retry: status === "running" ? state.retry : undefined,
    warnings: event.warnings ?? state.warnings,
    waitsForSlot: status === "running" && (event.queued_for_capacity ?? state.waitsForSlot),
  };
};

const applyPart = (state: ChatState, part: ChatMessagePart): ChatState => {
  if (part.type === "tool-result" && part.tool_call_id !== undefined)
    return applyResult(state, part.tool_call_id, part);
  const { live } = state;
  const last = live.at(-1);
  if ((part.type === "text" || part.type === "reasoning") && last?.type === part.type) {
    const text = (last.text ?? "") + (part.text ?? "");
    return { ...state, live: live.with(-1, { ...last, ...part, created_at: last.created_at, text }) };
  }
  const index = part.type === "tool-call" ? live.findIndex((one) => one.tool_call_id === part.tool_call_id) : -1;
  if (index < 0) return { ...state, live: [...live, part] };
  const args_delta = (live[index]?.args_delta ?? "") + (part.args_delta ?? "");
  return { ...state, live: live.with(index, { ...live[index], ...part, args_delta }) };
};

/** Very long output is cut at the start, because users watch its end. */
const MAX_LIVE_CHARS = 100_000;

const applyResult = (state: ChatState, id: string, part: ChatMessagePart): ChatState => {
  const previous = state.liveResults.get(id);
  const previousText = part.result_reset ? "" : (previous?.text ?? "");
  const text = (previousText + (part.result_delta ?? "")).slice(-MAX_LIVE_CHARS);
  const finishedPart = "result" in part ? part : previous?.part;
  return { ...state, liveResults: new Map(state.liveResults).set(id, { text, part: finishedPart }) };
};

/** Returns the results of finished calls, by call ID. */
export const collectResults = (messages: readonly ChatMessage[]): ReadonlyMap<string, ChatMessagePart> => {
  const results = new Map<string, ChatMessagePart>();
  for (const { content } of messages) {
    for (const part of content) {
      if (part.type === "tool-result" && part.tool_call_id !== undefined) results.set(part.tool_call_id, part);
    }
  }
  return results;
};

/** Returns the tokens of the last call's prompt and answer; 0 if none were counted since the last compaction. */
export const countContextTokens = (messages: ChatState["messages"]): number => {
  for (const { usage, content } of messages.toReversed()) {
    if (content.some(({ tool_name }) => tool_name === "chat_summarized" || tool_name === "chat_cleared")) return 0;
    if (!usage) continue;
    const { input_tokens = 0, cache_read_tokens = 0, cache_creation_tokens = 0, output_tokens = 0 } = usage;
    return input_tokens + cache_read_tokens + cache_creation_tokens + output_tokens;
  }
  return 0;
};

/** Returns the size of the context, if a coding agent has reported it. */
export const findContextLimit = (messages: ChatState["messages"]): number | undefined =>
  messages.findLast(({ usage }) => usage?.context_limit !== undefined)?.usage?.context_limit;
