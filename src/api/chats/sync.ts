// Computes the events that take a follower from one state of a chat to the next, in the order of facts/chats 2.3. Pure.
import type { ChatPicture } from "#actors/chat/messages.ts";
import { toRfc3339 } from "#base/clock.ts";
import { presentQueued } from "#domain/chats/present.ts";
import type { ActionRequired, ChatEvent } from "#schema/chats/chat-event.ts";
import { toChatStatus } from "#schema/chats/chat-status.ts";

/** The state a follower has received so far. */
export type SyncState = {
  readonly history_version: number;
  readonly queue_version: number;
  readonly retry_version: number;
  readonly generation_attempt: number;
  readonly status: string;
  /** The history versions for which the error, or the pending calls, were sent. */
  readonly error_sent: number;
  readonly action_sent: number;
};

export const NOTHING_SYNCED: SyncState = {
  history_version: 0,
  queue_version: 0,
  retry_version: 0,
  generation_attempt: 0,
  status: "",
  error_sent: 0,
  action_sent: 0,
};

/** Returns all events except messages and parts; messages go before them, parts after. */
export const listStateEvents = (
  chat_id: string,
  synced: SyncState,
  state: ChatPicture,
  compat: boolean,
): { events: ChatEvent[]; synced: SyncState } => {
  const events: ChatEvent[] = [];
  const { history_version, queue_version, retry_version, generation_attempt } = state;
  const status = toChatStatus(state.status);
  if (queue_version !== synced.queue_version) {
    events.push({
      type: "queue_update",
      chat_id,
      queued_messages: state.queue.map((row) => presentQueued(chat_id, row, compat)),
    });
  }
  if (status !== synced.status) events.push({ type: "status", chat_id, status: { status } });
  const sendsError = status === "error" && history_version > synced.error_sent;
  if (sendsError) events.push({ type: "error", chat_id, error: state.last_error ?? UNKNOWN_ERROR });
  const sendsAction = status === "requires_action" && history_version > synced.action_sent;
  if (sendsAction) events.push({ type: "action_required", chat_id, action_required: toActionRequired(state) });
  if (state.retry_state && retry_version !== synced.retry_version) {
    const { provider, retrying_at, status_code, ...retry } = state.retry_state;
    events.push({
      type: "retry",
      chat_id,
      retry: {
        ...retry,
        ...(provider ? { provider } : {}),
        retrying_at: toRfc3339(retrying_at),
        ...(status_code ? { status_code } : {}),
      },
    });
  }
  if (isPreviewOutdated(synced, state)) events.push({ type: "preview_reset", chat_id });
  return {
    events,
    synced: {
      history_version,
      queue_version,
      retry_version,
      generation_attempt,
      status,
      error_sent: sendsError ? history_version : synced.error_sent,
      action_sent: sendsAction ? history_version : synced.action_sent,
    },
  };
};

/** Returns whether the unfinished answer that a follower may show is outdated. */
const isPreviewOutdated = (synced: SyncState, { history_version, generation_attempt }: ChatPicture): boolean =>
  history_version !== synced.history_version ||
  (generation_attempt !== synced.generation_attempt && generation_attempt !== 0);

type PendingDecisions = Pick<ChatPicture, "pending_calls" | "budget_pause">;

/** Returns the calls that wait for a person's permission or for the client's results, with arguments as JSON text. */
export const toActionRequired = ({ pending_calls, budget_pause }: PendingDecisions): ActionRequired => {
  if (budget_pause) return { kind: "budget", tool_calls: [], budget: budget_pause };
  const permissionCalls = pending_calls.filter(({ permission }) => permission === "asked");
  const tool_calls = (permissionCalls.length > 0 ? permissionCalls : pending_calls).map(
    ({ tool_call_id, tool_name, args }) => ({
      tool_call_id,
      tool_name,
      args: JSON.stringify(args ?? {}),
    }),
  );
  return { ...(permissionCalls.length > 0 ? { kind: "permission" as const } : {}), tool_calls };
};

const UNKNOWN_ERROR = { kind: "generic", message: "The chat's last turn failed.", retryable: false } as const;
