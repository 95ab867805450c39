// The words of a chat's state machine: what is decided on, what may happen, and what a decision is made of. Used by state.ts, the
// chat actor and the turn.

import type { AppError } from "#base/errors.ts";
import type { BudgetPause } from "#schema/ai/budget.ts";
import type { ChatError } from "#schema/chats/chat-error.ts";
import type { MessagePart } from "#schema/chats/chat-part.ts";

export type Role = "user" | "assistant" | "tool" | "system";
export type Visibility = "user" | "model" | "both";

/** Counters of a model call; zeros are left out (facts/chats 3.7). */
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

/** A message before it has its number. */
export type NewMessage = {
  readonly role: Role;
  readonly visibility: Visibility;
  readonly content: readonly MessagePart[];
  readonly created_by: string | null;
  readonly model_config_id: string | null;
  readonly usage: Usage | null;
  /** A number: the row stands for all that came before it but so many messages just before it (rule CM-4). */
  readonly replayed?: number | null;
  /** What its author asks of all chats, as a lifecycle hook has seen it; null or absent where no hook has (rule HK-11). */
  readonly custom_prompt?: string | null;
};

/** A message of the history; `revision` is the snapshot version of the transition that touched it last. */
export type Message = NewMessage & {
  readonly id: number;
  readonly created_at: number;
  readonly revision: number;
};

/** A user's message that waits for the chat; rows are kept in the order of `position`. */
export type Queued = {
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

/** A tool call of the history that has no result yet. */
export type PendingCall = {
  readonly message_id: number;
  readonly tool_call_id: string;
  readonly tool_name: string;
  readonly args: unknown;
  /** What the model is notified of its arguments, with the result. */
  readonly note?: string;
  /** Absent: the chat's rules decide when it is to run. asked: a person is; granted, refused: the person's answer (rule PE-5). */
  readonly permission?: "asked" | "granted" | "refused";
};

/** The next try of a model call that failed; `retrying_at` in milliseconds since 1970 (facts/chats 2.9). */
export type RetryState = {
  readonly attempt: number;
  readonly delay_ms: number;
  readonly error: string;
  readonly kind: ChatError["kind"];
  readonly provider: string;
  readonly retrying_at: number;
  readonly status_code: number | null;
};

/** What the owner asks of a summary, and what a lifecycle hook tells the model (`context`) and people of that. Each may be empty. */
export type CompactionRequest = { readonly instructions: string; readonly context: string; readonly notice: string };

/** The execution state (facts/chats 1.1): changed by transitions alone, one commit each. Members are named as their columns. */
export type Execution = {
  /** One of the five statuses, or what an older version has left. */
  readonly status: string;
  readonly archived: boolean;
  readonly queue: readonly Queued[];
  readonly pending_calls: readonly PendingCall[];
  /** Not null: the turn that is owed makes the history shorter and ends; only while it runs, and until the history changes. */
  readonly compaction: CompactionRequest | null;
  readonly last_error: ChatError | null;
  readonly retry_state: RetryState | null;
  /** Milliseconds since 1970; only while results of the client's tools are awaited. */
  readonly requires_action_deadline: number | null;
  /** Not null: the turn waits until this budget is raised or begins anew; only while an action is required. */
  readonly budget_pause: BudgetPause | null;
  readonly snapshot_version: number;
  readonly history_version: number;
  readonly queue_version: number;
  readonly retry_version: number;
  readonly generation_attempt: number;
  /** The newest assistant message a user can see; 0 when none exists. */
  readonly last_assistant_id: number;
  /** The tool that has asked a person something, which is not answered yet; else null. */
  readonly asked_by: string | null;
  readonly updated_at: number;
};

/** Which generation a report belongs to: a report about another one is `stale` (rule CH-9). */
export type Fence = { readonly history_version: number; readonly generation_attempt: number };

/** What a person says to a call that was asked for. */
export type PermissionAnswer = { readonly tool_call_id: string; readonly isGranted: boolean };

export type ToolResult = { readonly tool_call_id: string; readonly output: unknown; readonly is_error: boolean };

/** `now` in milliseconds since 1970; `first_id` the first of as many reserved message numbers as `numbersFor` says. */
type At = { readonly now: number; readonly first_id: number };

export type Command = At &
  (
    | { readonly type: "send"; readonly message: NewQueued; readonly behavior: "queue" | "interrupt" }
    /** `from` is the edited message; `last_assistant_id` the newest assistant message before it. */
    | {
        readonly type: "edit";
        readonly from: number;
        readonly last_assistant_id: number;
        readonly message: NewMessage;
      }
    | { readonly type: "delete_queued"; readonly queued_id: number }
    | { readonly type: "promote_queued"; readonly queued_id: number }
    /** `is_empty`: nothing that was answered stands in what a model would be given. */
    | { readonly type: "request_compaction"; readonly request: CompactionRequest; readonly is_empty: boolean }
    /** `rows` begin with the one that stands for what came before; `is_empty`: a model would be given nothing. */
    | { readonly type: "clear"; readonly rows: readonly NewMessage[]; readonly is_empty: boolean }
    | { readonly type: "interrupt" }
    | { readonly type: "record_attempt"; readonly history_version: number }
    | { readonly type: "record_retry"; readonly fence: Fence; readonly retry: RetryState }
    | { readonly type: "commit_step"; readonly fence: Fence; readonly messages: readonly NewMessage[] }
    /**
     * `asked`: the calls that wait for a person's permission, for `approval_ms`; empty or absent: all wait for the client's results, as long
     * as those are awaited.
     */
    | {
        readonly type: "enter_requires_action";
        readonly history_version: number;
        readonly asked?: readonly string[];
        readonly approval_ms?: number;
      }
    | { readonly type: "finish_turn"; readonly history_version: number }
    /** `messages`: what was said before it failed. */
    | {
        readonly type: "finish_error";
        readonly fence: Fence;
        readonly error: ChatError;
        readonly messages?: readonly NewMessage[];
      }
    | {
        readonly type: "finish_interruption";
        readonly history_version: number;
        readonly partial: readonly NewMessage[];
      }
    /** `rows` come behind the results. */
    | {
        readonly type: "complete_requires_action";
        readonly results: readonly ToolResult[];
        readonly rows?: readonly NewMessage[] | undefined;
      }
    | { readonly type: "answer_permissions"; readonly answers: readonly PermissionAnswer[] }
    | { readonly type: "cancel_requires_action" }
    /** A budget keeps the next model call from beginning; the question is asked until `resets_at`. */
    | {
        readonly type: "pause_for_budget";
        readonly fence: Fence;
        readonly pause: BudgetPause;
        readonly resets_at: number;
      }
    | { readonly type: "budget_raised"; readonly budget_id: string }
    | { readonly type: "archive" }
    | { readonly type: "unarchive" }
    | { readonly type: "reconcile_invalid" }
  );

/** A command before it has its time and numbers. */
export type CommandInput = Command extends infer C ? (C extends Command ? Omit<C, "now" | "first_id"> : never) : never;

export type CommandType = Command["type"];
export type CommandOf<T extends CommandType> = Extract<Command, { type: T }>;

/** A user's message with the number it has if it must wait. */
export type NewQueued = Omit<Queued, "position" | "created_at">;

/** What the transition asks of the world once it is on disk. */
export type Effect =
  /** Begin the turn that is owed; one that runs is obsolete and what it has said is forgotten. */
  | { readonly do: "generate"; readonly history_version: number }
  /** Stop the turn and report what it has said so far. */
  | { readonly do: "interrupt"; readonly history_version: number };

export type Change<S extends Execution = Execution> = {
  readonly kind: "change";
  readonly state: S;
  /** Rows that are new in the history, ascending. */
  readonly inserted: readonly Message[];
  /** What has left the queue for the history, in that order. */
  readonly promoted: readonly Queued[];
  /** This message and all later ones leave the history. */
  readonly deleted_from: number | null;
  readonly effects: readonly Effect[];
};

export type Decision<S extends Execution = Execution> =
  | Change<S>
  | { readonly kind: "refused"; readonly error: AppError }
  /** A report of a generation that is no longer the current one: a value, not an error. */
  | { readonly kind: "stale" };
