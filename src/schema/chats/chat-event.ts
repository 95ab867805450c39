// Wire shapes of the events of a chat's stream and of the owner's watch stream (specification "Events", facts/chats 2).
import { type Static, type TProperties, Type as t } from "@sinclair/typebox";
import { BudgetPause } from "../ai/budget.ts";
import { time, uuid } from "../fields.ts";
import { oneOf } from "../one-of.ts";
import { named, namedObject } from "../shape-names.ts";
import { Chat, ChatMessage, QueuedMessage } from "./chat.ts";
import { ChatError } from "./chat-error.ts";
import { ChatMessagePart, toolCallId } from "./chat-part.ts";

export const ToolCallRequest = namedObject("ToolCallRequest", {
  tool_call_id: toolCallId,
  tool_name: t.String(),
  args: t.String({ description: "The arguments of the call, as JSON." }),
});
export type ToolCallRequest = Static<typeof ToolCallRequest>;

const kind = oneOf(
  ["permission", "budget"],
  "What the chat waits for. `permission`: approval to run these calls. `budget`: a budget; there are no calls. Absent: the client must submit the results of the calls.",
);

export const ActionRequired = namedObject("ChatActionRequired", {
  kind: t.Optional(kind),
  tool_calls: t.Array(ToolCallRequest, { description: "The calls to answer; empty for the kind `budget`." }),
  budget: t.Optional({ ...BudgetPause, description: "The budget that is used up. Only for the kind `budget`." }),
});
export type ActionRequired = Static<typeof ActionRequired>;

const event = <const T extends string, P extends TProperties>(
  type: T,
  name: string,
  members: P,
  description?: string,
) =>
  named(
    name,
    t.Object({ chat_id: uuid(), type: t.Literal(type), ...members }, description === undefined ? {} : { description }),
  );

export const ChatEvent = named(
  "ChatEvent",
  t.Union([
    event("message", "ChatMessageEvent", {
      message: {
        ...ChatMessage,
        description: "A message that was added or changed. Replaces a known one with the same ID.",
      },
    }),
    event("message_part", "ChatMessagePartEvent", {
      message_part: t.Object(
        {
          history_version: t.Integer({ description: "The version of the history that the response continues." }),
          generation_attempt: t.Integer({
            description: "The number of the model call for this version of the history, starting at 1.",
          }),
          seq: t.Integer({
            description: "The number of the part within the attempt, starting at 1. Increases by one without gaps.",
          }),
          role: t.String({ description: "The author of the part: `assistant`, or `tool` for results of calls." }),
          part: {
            ...ChatMessagePart,
            description: "The next part. Its text continues the previous part if both are text or reasoning.",
          },
        },
        { description: "A part of the response in progress. A `message` event with the complete message follows." },
      ),
    }),
    event("queue_update", "ChatQueueEvent", {
      queued_messages: t.Array(QueuedMessage, { description: "The whole queue, in order; may be empty." }),
    }),
    event("status", "ChatStatusEvent", {
      status: t.Object({
        status: t.String({ description: "The status of the chat, with the values of `ChatStatus`." }),
        warnings: t.Optional(
          t.Unsafe<readonly string[]>(
            t.Array(t.String(), {
              description:
                "Current problems of the turn, such as an MCP server it waits for. Unchanged if absent; none if empty.",
            }),
          ),
        ),
        queued_for_capacity: t.Optional(
          t.Boolean({
            description: "Whether the turn waits until others end; `warnings` also says so. Unchanged if absent.",
          }),
        ),
      }),
    }),
    event("error", "ChatErrorEvent", { error: ChatError }),
    event("action_required", "ChatActionRequiredEvent", { action_required: ActionRequired }),
    event("retry", "ChatRetryEvent", {
      retry: t.Object(
        {
          attempt: t.Integer({ description: "The number of the coming retry, starting at 1." }),
          delay_ms: t.Integer({ description: "The delay before the retry, in milliseconds." }),
          error: ChatError.properties.message,
          kind: ChatError.properties.kind,
          provider: ChatError.properties.provider,
          retrying_at: time("When the model is called again."),
          status_code: ChatError.properties.status_code,
        },
        { description: "Why a model call failed, and when it is retried." },
      ),
    }),
    event("preview_reset", "ChatPreviewResetEvent", {}, "Discard the parts of the response in progress."),
    event("history_reset", "ChatHistoryResetEvent", {}, "Discard all messages. The whole history follows."),
  ]),
);
export type ChatEvent = Static<typeof ChatEvent>;

export const WatchEvent = namedObject("ChatWatchEvent", {
  kind: t.String({
    description:
      "What happened: `created`, `deleted`, `status_change`, `title_change`, `action_required`, `trial_change` and others.",
  }),
  chat: {
    ...Chat,
    description: "The chat after the change, without children, context resources and `queued_for_capacity`.",
  },
  action_kind: t.Optional(kind),
  tool_calls: t.Optional(
    t.Array(ToolCallRequest, { description: "The calls to answer. Only for the kind `action_required`." }),
  ),
  budget: ActionRequired.properties.budget,
});
export type WatchEvent = Static<typeof WatchEvent>;
