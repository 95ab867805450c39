// What a chat's stream and the owner's watch stream send (specification "Events", facts/chats 2). Plain types: the streams have no
// JSON answer of their own in the OpenAPI document.
import type { Chat, ChatMessage, QueuedMessage } from "./chat.ts";
import type { ChatError } from "./chat-error.ts";
import type { ShownPart } from "./chat-part.ts";

export type ToolCallRequest = { tool_call_id: string; tool_name: string; args: string };

/** `permission`: a person is asked whether these may run; absent: the client is asked for their results. */
export type ActionRequired = { kind?: "permission"; tool_calls: ToolCallRequest[] };

export type ChatEvent = { chat_id: string } & (
  | { type: "message"; message: ChatMessage }
  | {
      type: "message_part";
      message_part: {
        history_version: number;
        generation_attempt: number;
        seq: number;
        role: string;
        part: ShownPart;
      };
    }
  | { type: "queue_update"; queued_messages: QueuedMessage[] }
  /**
   * `warnings`: what is wrong around the turn now, such as an MCP server it waits for; absent: as before, empty: nothing any more.
   * `queued_for_capacity`: the turn waits for others to end, which `warnings` say, too; absent: as before.
   */
  | { type: "status"; status: { status: string; warnings?: readonly string[]; queued_for_capacity?: boolean } }
  | { type: "error"; error: ChatError }
  | { type: "action_required"; action_required: ActionRequired }
  | {
      type: "retry";
      retry: {
        attempt: number;
        delay_ms: number;
        error: string;
        kind: ChatError["kind"];
        provider?: string;
        retrying_at: string;
        status_code?: number;
      };
    }
  | { type: "preview_reset" }
  | { type: "history_reset" }
);

export type WatchEvent = { kind: string; chat: Chat; action_kind?: "permission"; tool_calls?: ToolCallRequest[] };
