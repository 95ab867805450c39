// The one interface behind which every language model sits. A turn asks for a stream and reads events; nothing above this folder knows
// a provider's name or its errors.
import type { ChatErrorKind } from "#schema/chats/chat-error.ts";
import type { MessagePart } from "#schema/chats/chat-part.ts";
import type { ModelCost } from "#schema/chats/model-price.ts";
import type { FailureReason } from "./classify.ts";

/** A message as a model is given it. */
export type PromptMessage = {
  readonly role: "user" | "assistant" | "tool" | "system";
  readonly content: readonly MessagePart[];
};

export type ToolDefinition = {
  readonly name: string;
  readonly description: string;
  readonly input_schema: unknown;
  /** The MCP server it belongs to, as people know it; absent for tools of ours and of the client. */
  readonly server?: string;
};

/** Whose model call it is, and what for. */
export type Payer = { readonly user_id: string; readonly chat_key: number; readonly kind: CallKind };
/** The answers of a chat, and what is asked alongside them. */
export type CallKind = "chat_turn" | "title_generation" | "quickgen" | "compaction";

export type ModelRequest = {
  readonly payer: Payer;
  readonly model_id: string;
  readonly messages: readonly PromptMessage[];
  readonly tools: readonly ToolDefinition[];
  /** Whether tools that the provider runs on its own may be offered, too. */
  readonly provider_tools?: boolean;
  /** One of the seven efforts, or empty for the model's own choice. */
  readonly reasoning_effort: string;
  /** Counted from 1 on the same history. */
  readonly attempt: number;
  readonly signal: AbortSignal;
};

/** No call uses more. A provider that reports more is not believed. */
export const MAX_CALL_TOKENS = 1_000_000_000;

/** Counters of one call; what a provider does not report is left out. `input_tokens` counts none that came from or went into a cache. */
export type ModelUsage = Partial<
  Record<
    | "input_tokens"
    | "output_tokens"
    | "reasoning_tokens"
    | "total_tokens"
    | "cache_read_tokens"
    | "cache_creation_tokens"
    | "context_limit"
    /** What the call has cost, in micros; absent while the model has no price. */
    | "cost_micros",
    number
  >
>;

/** What a provider wants back with the same words, such as a signature. Kept with the message, never shown. */
export type ProviderMetadata = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

export type ModelEvent =
  | { readonly type: "text"; readonly delta: string; readonly metadata?: ProviderMetadata }
  /** `ends`: what is thought next is a part of its own. */
  | {
      readonly type: "reasoning";
      readonly delta: string;
      readonly metadata?: ProviderMetadata;
      readonly ends?: boolean;
    }
  /** All text of the answer so far was thought: the server did not mark it before its end. */
  | { readonly type: "text_was_reasoning" }
  /** More of a call's arguments, as JSON text; the whole call follows as `tool_call`. */
  | { readonly type: "tool_call_delta"; readonly id: string; readonly name: string; readonly delta: string }
  | {
      readonly type: "tool_call";
      readonly id: string;
      readonly name: string;
      readonly args: unknown;
      /** The arguments as the provider has sent them; absent when unknown. */
      readonly input?: string;
      readonly metadata?: ProviderMetadata;
      /** The provider runs it; its result comes as `tool_result` in the same stream. */
      readonly provider_executed?: true;
    }
  | {
      readonly type: "tool_result";
      readonly id: string;
      readonly name: string;
      readonly result: unknown;
      readonly is_error: boolean;
      readonly metadata: ProviderMetadata;
    }
  | { readonly type: "source"; readonly source_id: string; readonly url: string; readonly title: string }
  /** What the request could not contain, for the people of the chat. The first event, where there is one. */
  | { readonly type: "warnings"; readonly warnings: readonly string[] }
  | { readonly type: "usage"; readonly usage: ModelUsage }
  /**
   * The last event of every stream that succeeded. `paused`: the provider continues when it gets its answer back. `incomplete`: it
   * ended for an unknown reason.
   */
  | {
      readonly type: "finish";
      readonly reason: "stop" | "tool_calls" | "length" | "content_filter" | "paused" | "incomplete";
    };

export interface LanguageModels {
  /** Throws `ModelError`, immediately or while it is read. Ends early, without `finish`, only by an error of the provider. */
  stream(request: ModelRequest): AsyncIterable<ModelEvent>;
  /** The model to use for this id; undefined when none exists of that id that can be used. Null asks for the default. */
  resolve(id: string | null): ModelInfo | undefined;
  /** The model to ask small things alongside a chat of this model, such as its title; undefined or absent when none should be asked. */
  side?(id: string): ModelInfo | undefined;
  /** What a model costs now; undefined or absent when unknown. */
  price?(id: string): ModelCost | undefined;
}

export type ModelInfo = {
  readonly id: string;
  readonly provider: string;
  /** What people call the provider; absent where it has no other name. */
  readonly provider_name?: string;
  readonly display_name: string;
  /** What the provider calls it; absent where that is its id. */
  readonly model?: string;
  /** Tokens; absent when unknown. */
  readonly context_limit?: number;
  /** Percent of the context from which on histories are made shorter; null: as usual. */
  readonly compression_threshold?: number | null;
};

/** Why a model call failed, already classified (facts/chats 5.7). */
export class ModelError extends Error {
  override readonly name = "ModelError";
  readonly kind: ChatErrorKind;
  readonly retryable: boolean;
  readonly provider: string;
  /** What people call the provider; empty: nothing else than `provider`. */
  readonly display_name: string;
  readonly status_code: number | undefined;
  /** The provider asked to wait at least so long. */
  readonly retry_after_ms: number;
  /** Details for people, in addition to the kind. */
  readonly reason: FailureReason | undefined;

  constructor(
    kind: ChatErrorKind,
    detail: string,
    options: {
      retryable?: boolean;
      provider?: string;
      display_name?: string;
      status_code?: number | undefined;
      retry_after_ms?: number;
      reason?: FailureReason | undefined;
    } = {},
  ) {
    super(detail);
    this.kind = kind;
    this.retryable = options.retryable ?? RETRYABLE.has(kind);
    this.provider = options.provider ?? "";
    this.display_name = options.display_name ?? "";
    this.status_code = options.status_code;
    this.retry_after_ms = options.retry_after_ms ?? 0;
    this.reason = options.reason;
  }
}

const RETRYABLE: ReadonlySet<ChatErrorKind> = new Set([
  "overloaded",
  "rate_limit",
  "timeout",
  "stream_silence_timeout",
] as const);
