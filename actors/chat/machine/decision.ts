// The types of a chat's state machine: states, commands and decisions. Used by state.ts, the chat actor and the turn.

import type { AppError } from "#base/errors.ts";
import type { BudgetPause } from "#schema/ai/budget.ts";
import type { ChatError } from "#schema/chats/chat-error.ts";
import type { MessagePart } from "#schema/chats/chat-part.ts";

export type Role = "user" | "assistant" | "tool" | "system";
export type Visibility = "user" | "model" | "both";

/** Counters of a model call; zeros are omitted (facts/chats 3.7). */
export type Usage = Partial<
  Record<
    | "cache_creation_tokens"
    | "cache_read_tokens"
    | "context_limit"
    | "cost_micros"
    | "input_tokens"
    | "output_tokens"
    | "reasoning_tokens"
    | "total_tokens",
    number
  >
>;

/** A message that has no ID yet. */
export type NewMessage = {
  readonly role: Role;
  readonly visibility: Visibility;
  readonly content: readonly MessagePart[];
  readonly created_by: string | null;
  readonly model_config_id: string | null;
  readonly usage: Usage | null;
  /** Set on a summary or a cleared context. The message replaces all earlier messages except the last `replayed` ones (rule CM-4). */
  readonly replayed?: number | null;
  /** The author's custom prompt as a lifecycle hook received it; null or absent if no hook ran (rule HK-11). */
  readonly custom_prompt?: string | null;
};

/** A message of the history. `revision` is the snapshot version of the transition that last changed it. */
export type Message = NewMessage & {
  readonly id: number;
  readonly created_at: number;
  readonly revision: number;
};

/** A user's message in the queue. Rows are kept in the order of `position`. */
export type QueueItem = {
  readonly id: number;
  readonly position: number;
  readonly content: readonly MessagePart[];
  readonly created_by: string;
  readonly model_config_id: string | null;
  readonly reasoning_effort: string;
  /** As in `NewMessage`. */
  readonly custom_prompt?: string | null;
  readonly created_at: number;
};

/** A tool call in the history without a result. */
export type PendingCall = {
  readonly message_id: number;
  readonly tool_call_id: string;
  readonly tool_name: string;
  readonly args: unknown;
  /** A note about the arguments that the model gets with the result. */
  readonly note?: string;
  /**
   * Absent: the chat's rules decide when the call is about to run. `asked`: the call waits for a person. `granted` and `refused`: the
   * person's answer (rule PE-5).
   */
  readonly permission?: "asked" | "granted" | "refused";
  /**
   * Set if the call was refused not by a person, but because the chat moved to another workspace before the call had a result (rule PE-19).
   * `permission` is then also `refused`, so that older versions, which ignore this member, do not run the call.
   */
  readonly is_withdrawn?: true;
};

/** The next retry of a failed model call; `retrying_at` in milliseconds since 1970 (facts/chats 2.9). */
export type RetryState = {
  readonly attempt: number;
  readonly delay_ms: number;
  readonly error: string;
  readonly kind: ChatError["kind"];
  readonly provider: string;
  readonly retrying_at: number;
  readonly status_code: number | null;
};

/**
 * The owner's instructions for a summary, with a lifecycle hook's text for the model (`context`) and for people (`notice`). Each may be
 * empty.
 */
export type CompactionRequest = { readonly instructions: string; readonly context: string; readonly notice: string };

/** The execution state (facts/chats 1.1). Only transitions change it, each in one commit. Members have the names of their columns. */
export type Execution = {
  /** One of the five statuses, or a value stored by an older version. */
  readonly status: string;
  readonly archived: boolean;
  readonly queue: readonly QueueItem[];
  readonly pending_calls: readonly PendingCall[];
  /** If set, the current turn only compacts the history. Cleared when the turn ends or the history changes. */
  readonly compaction: CompactionRequest | null;
  readonly last_error: ChatError | null;
  readonly retry_state: RetryState | null;
  /** Milliseconds since 1970. Only while the client's results are awaited. */
  readonly requires_action_deadline: number | null;
  /** If set, the turn waits until this budget is raised or reset. Only in status `requires_action`. */
  readonly budget_pause: BudgetPause | null;
  readonly snapshot_version: number;
  readonly history_version: number;
  readonly queue_version: number;
  readonly retry_version: number;
  readonly generation_attempt: number;
  /** The newest assistant message that users can see; 0 for none. */
  readonly last_assistant_id: number;
  /** The name of the tool that asked the open question; null if no question is open. */
  readonly asked_by: string | null;
  readonly updated_at: number;
};

/** Identifies the generation a report belongs to. A report about another one is `stale` (rule CH-9). */
export type Fence = { readonly history_version: number; readonly generation_attempt: number };

/** The answer for a call that needs permission. `is_withdrawn`: see `PendingCall`. */
export type PermissionAnswer = {
  readonly tool_call_id: string;
  readonly permission: "granted" | "refused";
  readonly is_withdrawn?: true;
};

export type ToolResult = { readonly tool_call_id: string; readonly output: unknown; readonly is_error: boolean };

/** `now`: milliseconds since 1970. `first_id`: the first message ID reserved for the command; `countMessageIds` returns how many. */
type CommandBase = { readonly now: number; readonly first_id: number };

export type Command = CommandBase &
  (
    | { readonly type: "send"; readonly message: NewQueued; readonly behavior: "queue" | "interrupt" }
    /** `from` is the edited message; `last_assistant_id` is the newest assistant message before it. */
    | {
        readonly type: "edit";
        readonly from: number;
        readonly last_assistant_id: number;
        readonly message: NewMessage;
      }
    | { readonly type: "delete_queued"; readonly queued_id: number }
    | { readonly type: "promote_queued"; readonly queued_id: number }
    /** `is_empty`: the model's context contains no answered message. */
    | { readonly type: "request_compaction"; readonly request: CompactionRequest; readonly is_empty: boolean }
    /** The first of `rows` replaces everything before it. `is_empty`: the model's context is already empty. */
    | { readonly type: "clear"; readonly rows: readonly NewMessage[]; readonly is_empty: boolean }
    /** `refusal`: the reason why no further turn may begin. Queued messages then stay queued. */
    | { readonly type: "interrupt"; readonly refusal?: ChatError | undefined }
    | { readonly type: "record_attempt"; readonly history_version: number }
    | { readonly type: "record_retry"; readonly fence: Fence; readonly retry: RetryState }
    | { readonly type: "commit_step"; readonly fence: Fence; readonly messages: readonly NewMessage[] }
    /**
     * `asked`: IDs of the calls that wait for a person's permission, for up to `approval_ms`. If empty or absent, all calls wait for the
     * client's results.
     */
    | {
        readonly type: "enter_requires_action";
        readonly history_version: number;
        readonly asked?: readonly string[];
        readonly approval_ms?: number;
      }
    /** `refusal`: as for `interrupt`. */
    | { readonly type: "finish_turn"; readonly history_version: number; readonly refusal?: ChatError | undefined }
    /** `messages`: the output before the failure. */
    | {
        readonly type: "finish_error";
        readonly fence: Fence;
        readonly error: ChatError;
        readonly messages?: readonly NewMessage[];
      }
    /** `refusal`: the reason why the turn was stopped and no other turn may begin. */
    | {
        readonly type: "finish_interruption";
        readonly history_version: number;
        readonly partial: readonly NewMessage[];
        readonly refusal?: ChatError | undefined;
      }
    /** `rows` follow the results. */
    | {
        readonly type: "complete_requires_action";
        readonly results: readonly ToolResult[];
        readonly rows?: readonly NewMessage[] | undefined;
      }
    | { readonly type: "answer_permissions"; readonly answers: readonly PermissionAnswer[] }
    | { readonly type: "cancel_requires_action" }
    /** A budget blocks the next model call. The turn waits until the budget is raised, at most until `resets_at`. */
    | {
        readonly type: "pause_for_budget";
        readonly fence: Fence;
        readonly pause: BudgetPause;
        readonly resets_at: number;
      }
    | { readonly type: "budget_raised"; readonly budget_id: string }
    | { readonly type: "archive" }
    | { readonly type: "unarchive" }
    /** Repairs a chat with an invalid stored state. */
    | { readonly type: "reconcile_invalid" }
  );

/** A command before it gets its time and IDs. */
export type CommandInput = Command extends infer C ? (C extends Command ? Omit<C, "now" | "first_id"> : never) : never;

export type CommandType = Command["type"];
export type CommandOf<T extends CommandType> = Extract<Command, { type: T }>;

/** A message that a user sends, before it enters the queue or the history. `id` becomes its ID in the queue. */
export type NewQueued = Omit<QueueItem, "position" | "created_at">;

/** An effect to perform once the transition is on disk. */
export type Effect =
  /** Begin the next turn. A running turn is obsolete, and its output is discarded. */
  | { readonly do: "generate"; readonly history_version: number }
  /** Stop the turn and report its output so far. */
  | { readonly do: "interrupt"; readonly history_version: number };

export type Change<S extends Execution = Execution> = {
  readonly kind: "change";
  readonly state: S;
  /** New rows of the history, ascending. */
  readonly inserted: readonly Message[];
  /** Messages that moved from the queue to the history, in that order. */
  readonly promoted: readonly QueueItem[];
  /** The first message to remove from the history, along with all later ones. */
  readonly deleted_from: number | null;
  readonly effects: readonly Effect[];
};

export type Decision<S extends Execution = Execution> =
  | Change<S>
  | { readonly kind: "refused"; readonly error: AppError }
  /** The command reports about an obsolete generation, which is not an error. */
  | { readonly kind: "stale" };
