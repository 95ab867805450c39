// Wire shapes of the events of a chat's stream and of the owner's watch stream (specification "Events", facts/chats 2).
import { type Static, type TProperties, Type as t } from "@sinclair/typebox";
import { BudgetPause } from "../ai/budget.ts";
import { oneOf } from "../one-of.ts";
import { named, namedObject } from "../shape-names.ts";
import { Chat, ChatMessage, QueuedMessage } from "./chat.ts";
import { ChatError } from "./chat-error.ts";
import { ChatMessagePart } from "./chat-part.ts";

export const ToolCallRequest = namedObject("ToolCallRequest", {
  tool_call_id: t.String(),
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
  tool_calls: t.Array(ToolCallRequest),
  budget: t.Optional(BudgetPause),
});
export type ActionRequired = Static<typeof ActionRequired>;

const event = <const T extends string, P extends TProperties>(type: T, name: string, members: P) =>
  named(name, t.Object({ chat_id: t.String({ format: "uuid" }), type: t.Literal(type), ...members }));

export const ChatEvent = named(
  "ChatEvent",
  t.Union([
    event("message", "ChatMessageEvent", { message: ChatMessage }),
    event("message_part", "ChatMessagePartEvent", {
      message_part: t.Object({
        history_version: t.Integer(),
        generation_attempt: t.Integer(),
        seq: t.Integer(),
        role: t.String(),
        part: ChatMessagePart,
      }),
    }),
    event("queue_update", "ChatQueueEvent", { queued_messages: t.Array(QueuedMessage) }),
    event("status", "ChatStatusEvent", {
      status: t.Object({
        status: t.String(),
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
      retry: t.Object({
        attempt: t.Integer(),
        delay_ms: t.Integer(),
        error: t.String(),
        kind: ChatError.properties.kind,
        provider: t.Optional(t.String()),
        retrying_at: t.String({ format: "date-time" }),
        status_code: t.Optional(t.Integer()),
      }),
    }),
    event("preview_reset", "ChatPreviewResetEvent", {}),
    event("history_reset", "ChatHistoryResetEvent", {}),
  ]),
);
export type ChatEvent = Static<typeof ChatEvent>;

export const WatchEvent = namedObject("ChatWatchEvent", {
  kind: t.String({
    description:
      "What happened: `created`, `deleted`, `status_change`, `title_change`, `action_required`, `trial_change` and others.",
  }),
  chat: Chat,
  action_kind: t.Optional(kind),
  tool_calls: t.Optional(t.Array(ToolCallRequest)),
  budget: t.Optional(BudgetPause),
});
export type WatchEvent = Static<typeof WatchEvent>;
