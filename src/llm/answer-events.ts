// Converts the parts of a provider's response to the events of model.ts. Pure, except that it tracks the names of open calls.
import type { LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { sha256 } from "#base/ids.ts";
import { requireFewCalls } from "./answer-limits.ts";
import { parseArguments } from "./arguments.ts";
import { toFinish } from "./finish-reasons.ts";
import { MAX_CALL_TOKENS, type ModelEvent, type ModelUsage, type ProviderMetadata } from "./model.ts";
import { addStoredExecution, toReadableResult } from "./provider-tools.ts";
import type { RequestTools } from "./request/tools.ts";

type AnswerContext = {
  readonly provider: string;
  readonly context_limit: number;
  /** The tools of the request: the model knows tools and arguments by other names. */
  readonly tools: RequestTools;
};

/** Reads one response. Throws errors that the provider reports in it, and ModelError if it has too many calls. */
export class AnswerEvents {
  readonly #context: AnswerContext;
  readonly #openCallNames = new Map<string, string>();
  #startedCalls = 0;
  #completeCalls = 0;

  constructor(context: AnswerContext) {
    this.#context = context;
  }

  *read(part: LanguageModelV4StreamPart): Iterable<ModelEvent> {
    const { provider, context_limit, tools } = this.#context;
    const metadata = toMetadata(part);
    switch (part.type) {
      case "text-delta":
        if (part.delta !== "" || metadata.metadata) yield { type: "text", delta: part.delta, ...metadata };
        return;
      case "text-start":
      case "text-end":
        if (metadata.metadata) yield { type: "text", delta: "", ...metadata };
        return;
      case "reasoning-delta":
        return yield { type: "reasoning", delta: part.delta, ...metadata };
      case "reasoning-start":
        if (metadata.metadata) yield { type: "reasoning", delta: "", ...metadata };
        return;
      case "reasoning-end":
        return yield { type: "reasoning", delta: "", ends: true, ...metadata };
      case "tool-input-start":
        this.#startedCalls += 1;
        requireFewCalls(this.#startedCalls);
        if (!part.providerExecuted) this.#openCallNames.set(part.id, tools.getOwnName(part.toolName));
        return;
      case "tool-input-delta":
        // Calls that the provider runs itself are shown when they are complete.
        if (!this.#openCallNames.has(part.id)) return;
        return yield {
          type: "tool_call_delta",
          id: normalizeId(part.id),
          name: this.#openCallNames.get(part.id) ?? "",
          delta: part.delta,
        };
      case "tool-call":
        this.#completeCalls += 1;
        requireFewCalls(this.#completeCalls);
        return yield this.#toCall(part);
      case "tool-result": {
        const { toolName: name, result, isError: is_error = false } = part;
        const id = normalizeId(part.toolCallId);
        const storedMetadata = addStoredExecution(metadata.metadata, { provider, result });
        return yield {
          type: "tool_result",
          id,
          name,
          result: toReadableResult(result),
          is_error,
          metadata: storedMetadata,
        };
      }
      case "source":
        if (part.sourceType === "url")
          yield { type: "source", source_id: part.id, url: part.url, title: part.title ?? "" };
        return;
      case "error":
        throw part.error;
      case "finish":
        yield { type: "usage", usage: toUsage(part.usage, context_limit) };
        return yield toFinish(part.finishReason);
    }
  }

  #toCall(part: Extract<LanguageModelV4StreamPart, { type: "tool-call" }>): ModelEvent {
    const { provider, tools } = this.#context;
    const { metadata } = toMetadata(part);
    const { toolName, input } = part;
    const id = normalizeId(part.toolCallId);
    const parsedArgs = parseArguments(input);
    if (part.providerExecuted) {
      const storedMetadata = addStoredExecution(metadata, { provider });
      return {
        type: "tool_call",
        id,
        name: toolName,
        args: parsedArgs,
        provider_executed: true,
        metadata: storedMetadata,
      };
    }
    const args = tools.toOwnArgs(toolName, parsedArgs);
    const call = { type: "tool_call", id, name: tools.getOwnName(toolName), args } as const;
    const ownInput = args === parsedArgs ? input : JSON.stringify(args);
    return metadata ? { ...call, input: ownInput, metadata } : { ...call, input: ownInput };
  }
}

const MAX_ID_CHARS = 256;
// biome-ignore lint/suspicious/noControlCharactersInRegex: IDs must not contain these.
const CONTROL_CHARACTER = /[\u0000-\u001f\u007f]/;

/** Returns a valid ID for the call: one that is too long or contains control characters is replaced deterministically. */
const normalizeId = (id: string): string =>
  id.length > MAX_ID_CHARS || CONTROL_CHARACTER.test(id) ? `call_${sha256(id).slice(0, 32)}` : id;

const toMetadata = (part: LanguageModelV4StreamPart): { metadata?: ProviderMetadata } =>
  "providerMetadata" in part && part.providerMetadata && Object.keys(part.providerMetadata).length > 0
    ? { metadata: part.providerMetadata as ProviderMetadata }
    : {};

type Usage = Extract<LanguageModelV4StreamPart, { type: "finish" }>["usage"];

const toUsage = ({ inputTokens, outputTokens }: Usage, context_limit: number): ModelUsage => {
  const counted = {
    input_tokens: countUncached(inputTokens),
    output_tokens: outputTokens.total,
    reasoning_tokens: outputTokens.reasoning,
    total_tokens:
      inputTokens.total === undefined || outputTokens.total === undefined
        ? undefined
        : inputTokens.total + outputTokens.total,
    cache_read_tokens: inputTokens.cacheRead,
    cache_creation_tokens: inputTokens.cacheWrite,
  };
  const validCounts = Object.entries(counted).filter(
    ([, count]) => typeof count === "number" && count > 0 && count <= MAX_CALL_TOKENS,
  );
  return validCounts.length === 0 ? {} : { ...Object.fromEntries(validCounts), context_limit };
};

/** Clients add the cached tokens themselves (facts/chats 5.6). */
const countUncached = ({ total, noCache, cacheRead = 0, cacheWrite = 0 }: Usage["inputTokens"]) =>
  noCache ?? (total === undefined ? undefined : Math.max(0, total - cacheRead - cacheWrite));
