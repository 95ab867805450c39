// The arguments and replies of the chat actor's messages, as plain data.
import type { ChatRow, DynamicTool } from "#db/chats/chats.ts";
import type { RequestKey } from "#db/chats/requests.ts";
import type { AgentOption, ChosenOptions } from "#schema/chats/agent-option.ts";
import type { ChatError } from "#schema/chats/chat-error.ts";
import type { MessagePart } from "#schema/chats/chat-part.ts";
import type { ChatPermissions, PermissionMode } from "#schema/chats/chat-permissions.ts";
import type { ToolDefinition } from "#src/llm/model.ts";
import type { ChatState } from "./machine/chat-state.ts";
import type {
  CommandInput,
  CompactionRequest,
  Fence,
  Message,
  NewMessage,
  PendingCall,
  QueueItem,
  RetryState,
  ToolResult,
} from "./machine/decision.ts";
import type { PromptChat } from "./prompt/prompt.ts";
import type { PartBatch } from "./turn/stream-buffer.ts";

/** The fields that updates change without a transition, so no version increases (facts/chats 1.1). */
export type ChatPatch = Partial<
  Pick<
    ChatRow,
    | "title"
    | "labels"
    | "plan_mode"
    | "workspace_id"
    | "last_model_config_id"
    | "replaced_model_config_id"
    | "last_reasoning_effort"
    | "mcp_server_ids"
    | "permissions"
    | "last_turn_summary"
    | "summary"
    | "agent_session"
    | "crashes"
  >
>;

/** Omitted fields, and a null `pin`, change nothing. */
export type ChangeChat = {
  readonly archived?: boolean;
  readonly patch: ChatPatch;
  /** Options of the coding agent from the next message on. */
  readonly agent_options?: ChosenOptions;
  /** Overrides `permissions` and `plan_mode` in `patch`. */
  readonly permission_mode?: PermissionMode;
  /** Requires approval for all changes from now on, if not already required. */
  readonly asks?: boolean;
  /** The requested position among the owner's pinned chats; 0 unpins. */
  readonly pin: number | null;
  /** Rejects if the chat is pinned or has changed since this time (rule RT-1). */
  readonly silent_since?: number;
};

/** `chat` omits the execution state, which the actor initializes. `messages` are the system rows and the first user message. */
export type CreateChat = {
  readonly chat: Pick<
    ChatRow,
    | "id"
    | "organization_id"
    | "owner_id"
    | "workspace_id"
    | "parent_chat_id"
    | "root_chat_id"
    | "last_model_config_id"
    | "last_reasoning_effort"
    | "title"
    | "client_type"
    | "plan_mode"
    | "labels"
    | "mcp_server_ids"
  > & { readonly dynamic_tools: DynamicTool[] } & Partial<
      Pick<ChatRow, "subagent_type" | "permissions" | "coding_agent">
    >;
  readonly messages: readonly NewMessage[];
  /** The idempotency key of the request. */
  readonly request?: RequestKey | undefined;
};

/** A title or summary, and the version of the chat it was generated from. */
export type Description = {
  readonly patch: Pick<ChatPatch, "title" | "summary" | "last_turn_summary">;
  readonly title: string;
  readonly history_version: number;
};

/** With a key, a retry gets the first answer and changes nothing (rule CH-40). */
type Repeatable = { readonly request_key?: RequestKey | undefined };

export type SendMessage = {
  readonly content: readonly MessagePart[];
  /** As in `NewMessage`. */
  readonly custom_prompt?: string | null;
  readonly created_by: string;
  readonly model_config_id: string | null;
  readonly reasoning_effort: string;
  readonly behavior: "queue" | "interrupt";
  readonly patch: ChatPatch;
} & Repeatable;

export type SendResult = { readonly queued: QueueItem | null; readonly messages: readonly Message[] };

export type EditMessage = {
  readonly message_id: number;
  readonly content: readonly MessagePart[];
  readonly custom_prompt?: string | null;
  readonly created_by: string;
  readonly model_config_id: string | null;
  readonly patch: ChatPatch;
};

export type EditResult = { readonly deleted_ids: readonly number[]; readonly messages: readonly Message[] };

/** The data that a turn needs for one attempt. */
export type StartedAttempt = {
  readonly fence: Fence;
  readonly chat_key: number;
  /** The chat's shard. */
  readonly part: number;
  readonly model_id: string;
  readonly provider: string;
  /** Display name of the provider. */
  readonly provider_name: string;
  readonly reasoning_effort: string;
  /** Tokens; 0 if unknown. */
  readonly context_limit: number;
  readonly compression_threshold: number | null;
  readonly tools: readonly ToolDefinition[];
  /** Whether the provider's own tools may be offered. */
  readonly provider_tools: boolean;
  /** If set, the turn compacts the history with these instructions and ends. */
  readonly compaction: CompactionRequest | null;
  /** If not empty, the turn runs these calls of the last step instead of calling a model. */
  readonly calls: readonly PendingCall[];
  /** The chat's permission rules. */
  readonly permissions: ChatPermissions | null;
  /** IDs of refused calls, with the text that answers them. */
  readonly refused: readonly (readonly [id: string, why: string])[];
  /** Whether other calls wait for a person or the client. */
  readonly awaits_client: boolean;
  /** The chat's properties that its prompt, tools and hooks depend on. */
  readonly chat: PromptChat;
  /** The chat's parent and root; both are null in a root chat. */
  readonly family: Pick<ChatRow, "parent_chat_id" | "root_chat_id">;
  /** The chat's selected MCP servers of the organization. */
  readonly mcp_server_ids: readonly string[];
  /** The coding agent that runs the turn, and the session to continue; null for a model. */
  readonly coding_agent: { readonly name: string; readonly session: ChatRow["agent_session"] } | null;
};

export type RecordAgentSession = {
  readonly history_version: number;
  readonly session_id: string;
  /** ID of the last message that the session has received. */
  readonly through: number;
  readonly options: readonly AgentOption[];
};

export type Step = {
  readonly fence: Fence;
  readonly messages: readonly NewMessage[];
} & (
  | {
      /** finish: the turn has ended. act: the client must run its tools. continue: the model continues. */
      readonly then: "finish" | "act" | "continue";
    }
  /** The turn has failed. The step's messages are stored nevertheless. */
  | { readonly then: "fail"; readonly error: ChatError }
);

/** `continues`: the turn has more to do, even if other calls wait for the client. */
export type ReportResult = { readonly history_version: number; readonly continues: boolean };

export type AnsweredPermissions = {
  readonly answers: readonly {
    readonly tool_call_id: string;
    readonly decision: "allow" | "deny";
    /** With `always`, the answer becomes a rule in front of the others. */
    readonly scope?: "once" | "always";
    /** The prefix of commands that this rule matches; defaults to this call's command. */
    readonly command?: string;
  }[];
};

/** The client's results. `rows` are messages to add after them. */
export type Results = { readonly results: readonly ToolResult[]; readonly rows?: readonly NewMessage[] } & Repeatable;

/** The reply to a report: `stale` if it is about an older history or attempt, so nothing was stored. */
export type LateResult = "done" | "stale";

type Report<T extends CommandInput["type"]> = Omit<Extract<CommandInput, { type: T }>, "type">;

/** A turn's reports to its chat. Each names the history and attempt that it belongs to, and returns `stale` once the turn is obsolete. */
export interface TurnReports {
  beginAttempt(args: { readonly history_version: number }): Promise<StartedAttempt | "stale">;
  recordRetry(args: Report<"record_retry">): Promise<LateResult>;
  reportStep(args: Step): Promise<ReportResult | "stale">;
  reportFailure(args: Report<"finish_error">): Promise<LateResult>;
  recordAgentSession(args: RecordAgentSession): Promise<LateResult>;
  pauseForBudget(args: Report<"pause_for_budget">): Promise<LateResult>;
  budgetRaised(args: { readonly budget_id: string }): Promise<LateResult>;
  finishInterruption(args: Report<"finish_interruption">): Promise<LateResult>;
  noteStopped(args: Record<string, never>): Promise<void>;
}

/** Messages of the generator of titles and summaries. */
export interface DescribedMessages {
  describe(args: Description): Promise<LateResult>;
}

/** The message that makes a sub-chat reload its row after its root's actor has changed it. */
export interface FamilyMessages {
  reload(args: Record<string, never>): Promise<void>;
}

/** A chat's state as its followers see it. */
export type ChatPicture = {
  readonly snapshot_version: number;
  readonly history_version: number;
  readonly queue_version: number;
  readonly retry_version: number;
  readonly generation_attempt: number;
  readonly status: string;
  readonly queue: readonly QueueItem[];
  readonly last_error: ChatError | null;
  readonly retry_state: RetryState | null;
  readonly pending_calls: ChatState["pending_calls"];
  readonly budget_pause: ChatState["budget_pause"];
};

/** What followers get after a commit: the state and the new messages. `reset`: messages were removed, so they must reload the history. */
export type ChatNotice = ChatPicture & { readonly messages: readonly Message[]; readonly reset: boolean };

/** A chat's state and its turn's current output. */
export type ChatSnapshot = { readonly picture: ChatPicture; readonly buffer: PartBatch | null };

export const toPicture = (state: ChatState): ChatPicture => ({
  snapshot_version: state.snapshot_version,
  history_version: state.history_version,
  queue_version: state.queue_version,
  retry_version: state.retry_version,
  generation_attempt: state.generation_attempt,
  status: state.status,
  queue: state.queue,
  last_error: state.last_error,
  retry_state: state.retry_state,
  pending_calls: state.pending_calls,
  budget_pause: state.budget_pause,
});

/** Returns whether people may see the row. All other rows are only for the model. */
export const isVisible = ({ visibility }: Pick<Message, "visibility">): boolean => visibility !== "model";
