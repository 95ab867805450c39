// The interface of every language model. A turn requests a stream and reads events; nothing outside this folder knows a provider's name or
// its errors.
import type { MemoryHold } from "#base/system/memory-share.ts";
import type { ChatErrorKind } from "#schema/chats/chat-error.ts";
import type { MessagePart } from "#schema/chats/chat-part.ts";
import type { ModelCost } from "#schema/chats/model-price.ts";
import type { FailureReason } from "./classify.ts";

/** A message as it is sent to a model. */
export type PromptMessage = {
  readonly role: "user" | "assistant" | "tool" | "system";
  readonly content: readonly MessagePart[];
};

export type ToolDefinition = {
  readonly name: string;
  readonly description: string;
  readonly input_schema: unknown;
  /** The display name of its MCP server; undefined for Slipway's tools and the client's. */
  readonly server?: string;
};

/** The user and purpose of a model call, for accounting. */
export type Payer = { readonly user_id: string; readonly chat_key: number; readonly kind: CallKind };
/** `chat_turn` is an answer of a chat; the others are secondary calls. */
export type CallKind = "chat_turn" | "title_generation" | "quickgen" | "compaction";

/** Memory that is held for a request. */
export type RequestMemory = {
  readonly hold: MemoryHold;
  /** The part that is still needed once the provider has the request: all of it except the attachments. */
  readonly text_bytes: number;
};

export type ModelRequest = {
  readonly payer: Payer;
  readonly model_id: string;
  readonly messages: readonly PromptMessage[];
  readonly tools: readonly ToolDefinition[];
  /** Also offers tools that the provider runs itself. */
  readonly provider_tools?: boolean;
  /** One of the seven efforts, or empty for the model's default. */
  readonly reasoning_effort: string;
  /** The memory that the caller holds for it. If absent, the call takes it, and may wait for it (rule CH-54). */
  readonly memory?: RequestMemory | undefined;
  /** Starts at 1 for each history. */
  readonly attempt: number;
  readonly signal: AbortSignal;
  /** Called before the request is sent to its provider, which bills it from then on. */
  readonly onSend?: () => void;
};

/** No call uses more. A larger reported value is ignored. */
export const MAX_CALL_TOKENS = 1_000_000_000;

/** Token counts of one call, without the ones that the provider does not report. `input_tokens` excludes cache reads and writes. */
export type ModelUsage = Partial<
  Record<
    | "input_tokens"
    | "output_tokens"
    | "reasoning_tokens"
    | "total_tokens"
    | "cache_read_tokens"
    | "cache_creation_tokens"
    /** Part of `cache_creation_tokens`: Anthropic keeps these for an hour, and bills them at twice the price of input. */
    | "cache_creation_1h_tokens"
    | "context_limit"
    /** Cost of the call in micros; undefined if the model has no price. */
    | "cost_micros",
    number
  >
>;

/** Data that a provider requires back with the same content, such as a signature. Stored with the message, never shown. */
export type ProviderMetadata = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

export type ModelEvent =
  | { readonly type: "text"; readonly delta: string; readonly metadata?: ProviderMetadata }
  /** `ends`: further reasoning starts a new part. */
  | {
      readonly type: "reasoning";
      readonly delta: string;
      readonly metadata?: ProviderMetadata;
      readonly ends?: boolean;
    }
  /** All text so far was reasoning, which the server did not mark until its end. */
  | { readonly type: "text_was_reasoning" }
  /** A part of a call's arguments as JSON text; the complete call follows as `tool_call`. */
  | { readonly type: "tool_call_delta"; readonly id: string; readonly name: string; readonly delta: string }
  | {
      readonly type: "tool_call";
      readonly id: string;
      readonly name: string;
      readonly args: unknown;
      /** The arguments as sent by the provider; undefined if unknown. */
      readonly input?: string;
      readonly metadata?: ProviderMetadata;
      /** The provider runs the call; its result follows as `tool_result` in the same stream. */
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
  /** Parts that the request could not contain, for the chat's users. The first event, if present. */
  | { readonly type: "warnings"; readonly warnings: readonly string[] }
  | { readonly type: "usage"; readonly usage: ModelUsage }
  /**
   * The last event of every successful stream. `paused`: the provider continues when its response is sent back. `incomplete`: it ended for
   * an unknown reason.
   */
  | {
      readonly type: "finish";
      readonly reason: "stop" | "tool_calls" | "length" | "content_filter" | "paused" | "incomplete";
    };

export interface LanguageModels {
  /** Throws `ModelError`, immediately or during iteration. Ends without `finish` only because of a provider error. */
  stream(request: ModelRequest): AsyncIterable<ModelEvent>;
  /** Returns the model with this ID; undefined if it is not available. Null means the default model. */
  resolve(id: string | null): ModelInfo | undefined;
  /** Returns the model for secondary calls of a chat with this model, such as its title; undefined if none should be used. */
  resolveSideModel?(id: string): ModelInfo | undefined;
  /** Returns the current price of a model; undefined if unknown. */
  findModelPrice?(id: string): ModelCost | undefined;
}

export type ModelInfo = {
  readonly id: string;
  readonly provider: string;
  /** Display name of the provider, if it has one. */
  readonly provider_name?: string;
  readonly display_name: string;
  /** The provider's name for the model; defaults to its ID. */
  readonly model?: string;
  /** In tokens; undefined if unknown. */
  readonly context_limit?: number;
  /** Percentage of the context at which histories are compacted; null for the default. */
  readonly compression_threshold?: number | null;
};

/** A failed model call, with its classification (facts/chats 5.7). */
export class ModelError extends Error {
  override readonly name = "ModelError";
  readonly kind: ChatErrorKind;
  readonly retryable: boolean;
  readonly provider: string;
  /** Display name of the provider; empty if it is the same as `provider`. */
  readonly display_name: string;
  readonly status_code: number | undefined;
  /** Minimum wait that the provider requested. */
  readonly retry_after_ms: number;
  /** Details for users in addition to the kind. */
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
