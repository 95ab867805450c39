// What a chat is told and what it answers: plain data, the arguments and replies of the chat actor's messages.
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
  Queued,
  RetryState,
  ToolResult,
} from "./machine/decision.ts";
import type { PromptOf } from "./prompt/prompt.ts";
import type { PartBatch } from "./turn/stream-buffer.ts";

/** Metadata: ordinary updates that raise no version (facts/chats 1.1). */
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
  >
>;

/** What is left out stays. */
export type ChangeChat = {
  readonly archived?: boolean;
  readonly patch: ChatPatch;
  /** What the coding agent is to work with from the next message on. */
  readonly agent_options?: ChosenOptions;
  /** Goes over what `patch` says of permissions and planning. */
  readonly permission_mode?: PermissionMode;
  /** Whatever changes something is asked for from now on, where it was not yet. */
  readonly asks?: boolean;
  readonly pin: number | null;
  readonly silent_since?: number;
};

/** `chat` has everything but the execution state, which begins here; `messages` are the system rows and the first user message. */
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
  /** What asks for it, kept so that the same again is known. */
  readonly request?: RequestKey | undefined;
};

/** A title or summary made of the chat as it was then. */
export type Description = {
  readonly patch: Pick<ChatPatch, "title" | "summary" | "last_turn_summary">;
  readonly title: string;
  readonly history_version: number;
};

/** With a key, a request that comes again gets the first one's answer and changes nothing (rule CH-40). */
export type Repeatable = { readonly request_key?: RequestKey | undefined };

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

export type Sent = { readonly queued: Queued | null; readonly messages: readonly Message[] };

export type EditMessage = {
  readonly message_id: number;
  readonly content: readonly MessagePart[];
  readonly custom_prompt?: string | null;
  readonly created_by: string;
  readonly model_config_id: string | null;
  readonly patch: ChatPatch;
};

export type Edited = { readonly deleted_ids: readonly number[]; readonly messages: readonly Message[] };

/** What a turn needs for one model call; "stale" when it is no longer wanted. */
export type StartedAttempt = {
  readonly fence: Fence;
  readonly chat_key: number;
  readonly model_id: string;
  readonly provider: string;
  /** What people call it. */
  readonly provider_name: string;
  readonly reasoning_effort: string;
  /** Tokens; 0 when nobody knows. */
  readonly context_limit: number;
  readonly compression_threshold: number | null;
  readonly tools: readonly ToolDefinition[];
  /** Whether the provider's own tools may be offered. */
  readonly provider_tools: boolean;
  /** Not null: the history is made shorter as its owner has asked, and the turn ends. */
  readonly compaction: CompactionRequest | null;
  /** Not empty: the calls of the last step that have no result yet are run, and no model is called. */
  readonly calls: readonly PendingCall[];
  /** The chat's rules, by which the turn knows what a person would be asked about. */
  readonly permissions: ChatPermissions | null;
  /** Those of them that may not run, with the words that answer them, by their ids. */
  readonly refused: readonly (readonly [id: string, why: string])[];
  /** There are calls for the client alongside those. */
  readonly awaits_client: boolean;
  /** What the system prompt depends on. */
  readonly about: PromptOf;
  /** Null in root chats. */
  readonly family: Pick<ChatRow, "parent_chat_id" | "root_chat_id">;
  /** The organization's MCP servers that the chat has chosen. */
  readonly mcp_server_ids: readonly string[];
  /** Who does the turn in the place of a model, and the session it goes on with; null: nobody. */
  readonly coding_agent: { readonly name: string; readonly session: ChatRow["agent_session"] } | null;
};

/** The session of a coding agent that knows the chat up to this message. */
export type RecordAgentSession = {
  readonly history_version: number;
  readonly session_id: string;
  readonly through: number;
  readonly options: readonly AgentOption[];
};

export type Step = {
  readonly fence: Fence;
  readonly messages: readonly NewMessage[];
} & (
  | {
      /** finish: the turn has ended. act: the client's tools are asked for. continue: the model continues. */
      readonly then: "finish" | "act" | "continue";
    }
  /** The turn has failed; the messages are stored all the same. */
  | { readonly then: "fail"; readonly error: ChatError }
);

/** `goes_on`: the turn has more to do, also where the client's tools were to be asked for. */
export type Reported = { readonly history_version: number; readonly goes_on: boolean };

export type AnsweredPermissions = {
  readonly answers: readonly {
    readonly tool_call_id: string;
    readonly decision: "allow" | "deny";
    /** always: a rule that says so is put in front of the others. */
    readonly scope?: "once" | "always";
    /** The words that commands of that rule begin with; those of this call when absent. */
    readonly command?: string;
  }[];
};

/** `rows` come behind the results. */
export type Results = { readonly results: readonly ToolResult[]; readonly rows?: readonly NewMessage[] } & Repeatable;

/** What became of a message that may come too late: "stale" is a value, not an error. */
export type Late = "done" | "stale";

type Report<T extends CommandInput["type"]> = Omit<Extract<CommandInput, { type: T }>, "type">;

/** What a turn says to its chat, with the history and attempt it belongs to; "stale" once it is no longer wanted. */
export interface TurnReports {
  beginAttempt(args: { readonly history_version: number }): Promise<StartedAttempt | "stale">;
  recordRetry(args: Report<"record_retry">): Promise<Late>;
  reportStep(args: Step): Promise<Reported | "stale">;
  reportFailure(args: Report<"finish_error">): Promise<Late>;
  recordAgentSession(args: RecordAgentSession): Promise<Late>;
  pauseForBudget(args: Report<"pause_for_budget">): Promise<Late>;
  budgetRaised(args: { readonly budget_id: string }): Promise<Late>;
  finishInterruption(args: Report<"finish_interruption">): Promise<Late>;
}

/** What anyone who names and sums up chats says to them. */
export interface DescribedMessages {
  describe(args: Description): Promise<Late>;
}

/** What a chat hears when its root has written its row. */
export interface FamilyMessages {
  reload(args: Record<string, never>): Promise<void>;
}

/** Everything about a chat that followers see, as of one snapshot version. */
export type ChatPicture = {
  readonly snapshot_version: number;
  readonly history_version: number;
  readonly queue_version: number;
  readonly retry_version: number;
  readonly generation_attempt: number;
  readonly status: string;
  readonly queue: readonly Queued[];
  readonly last_error: ChatError | null;
  readonly retry_state: RetryState | null;
  readonly pending_calls: ChatState["pending_calls"];
  readonly budget_pause: ChatState["budget_pause"];
};

/** A picture, what is new in the history, and whether something has left it. */
export type ChatNotice = ChatPicture & { readonly messages: readonly Message[]; readonly reset: boolean };

/** A picture and what the turn has said so far. */
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

/** True for rows that people may see; the others never leave the server. */
export const isVisible = ({ visibility }: Pick<Message, "visibility">): boolean => visibility !== "model";
