// One call of a configured model, read as the events of model.ts. Whatever goes wrong becomes a `ModelError`, classified, with the
// provider's words as its detail and without any secret. The connection is closed as soon as nobody reads on.
import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { EFFORTS, type Effort } from "#schema/chats/model-config.ts";
import { argumentsOf } from "./arguments.ts";
import type { Attachments } from "./attachments.ts";
import { BrokenChunks } from "./broken-chunks.ts";
import { withCacheMarks } from "./cache-marks.ts";
import { classify, reasonOf, retryAfter } from "./classify.ts";
import { concessionFor, type Manner, mannerFor } from "./concessions.ts";
import type { ConfiguredModel, ConfiguredProvider } from "./configured-model.ts";
import { ModelError, type ModelEvent, type ModelRequest, type ModelUsage, type ProviderMetadata } from "./model.ts";
import { promptOf } from "./prompt.ts";
import { keptWith, providerTools, shownResult, withoutOurs } from "./provider-tools.ts";
import { saidOnce } from "./said.ts";
import { withoutSecrets } from "./secrets.ts";
import { ThinkTags } from "./think-tags.ts";

export type Call = {
  readonly provider: ConfiguredProvider;
  readonly config: ConfiguredModel;
  readonly model: LanguageModelV4;
  readonly key: string;
  readonly attachments: Attachments;
  readonly now: () => number;
};

/** Throws `ModelError`, also when the provider did not say that its answer is complete, or refused without a word. */
export async function* streamOf(call: Call, request: ModelRequest): AsyncGenerator<ModelEvent> {
  const gone = new AbortController();
  const signal = AbortSignal.any([request.signal, gone.signal]);
  try {
    const { stream } = await startedBy(call, request, signal);
    const names = new Map<string, string>();
    const broken = new BrokenChunks();
    const tags = sendsTags(call) ? new ThinkTags() : undefined;
    const reader = stream.getReader();
    let spoke = false;
    for (;;) {
      const { value: part, done } = await reader.read();
      if (done) throw new Error(ENDED_EARLY);
      if (broken.isOne(part)) continue;
      for (const event of tags ? tagged(tags, eventsOf(part, names, call)) : eventsOf(part, names, call)) {
        if (event.type === "finish" && event.reason === "content_filter" && !spoke) throw refusalOf(call);
        spoke ||= event.type !== "usage" && event.type !== "finish";
        yield event;
        if (event.type === "finish") return;
      }
    }
  } catch (error) {
    if (request.signal.aborted) throw request.signal.reason;
    throw modelErrorOf(error, call);
  } finally {
    gone.abort();
  }
}

/** What models have turned out not to take. */
const learned = new WeakMap<LanguageModelV4, Manner>();
/** Requests that are sent for one answer, each with less than the one before. */
const MOST_TRIES = 5;

const startedBy = async (call: Call, request: ModelRequest, signal: AbortSignal) => {
  const { model, provider, config } = call;
  const useResponses = config.model_config.provider_options?.use_responses_api !== false;
  let lasting = learned.get(model) ?? mannerFor(provider.provider, useResponses);
  let manner = lasting;
  for (let left = MOST_TRIES; ; left -= 1) {
    const options = await optionsOf(call, request, manner, signal);
    try {
      const started = await model.doStream(options);
      learned.set(model, lasting);
      return started;
    } catch (error) {
      const hadEffort = options.reasoning !== undefined;
      const next = concessionFor(manner, { ...signalsOf(error), prompt: options.prompt, hadEffort });
      if (!next || left === 0 || signal.aborted) throw error;
      manner = { ...manner, ...next.change };
      if (next.isForGood) lasting = { ...lasting, ...next.change };
    }
  }
};

/** The providers themselves send thoughts apart; servers of open models may not. */
const sendsTags = ({ provider: { provider, base_url } }: Call): boolean =>
  provider === "openai-compat" || base_url !== "";

function* tagged(tags: ThinkTags, events: Iterable<ModelEvent>): Iterable<ModelEvent> {
  for (const event of events) yield* tags.add(event);
}

const ENDED_EARLY = "The stream ended early.";

const refusalOf = ({ provider: { provider, display_name } }: Call): ModelError =>
  new ModelError("content_filter", "", { provider, display_name });

const optionsOf = async (
  { config, provider, attachments }: Call,
  { messages, tools, provider_tools = false, reasoning_effort }: ModelRequest,
  manner: Manner,
  abortSignal: AbortSignal,
): Promise<LanguageModelV4CallOptions> => {
  const { model_config: wanted } = config;
  const effort = manner.effort ? effortFor(reasoning_effort, wanted.reasoning) : undefined;
  const form = { ...manner, kind: provider.provider };
  const own = wanted.provider_options;
  const offered = [
    ...tools.map(({ name, description, input_schema }) => ({
      type: "function" as const,
      name,
      description,
      inputSchema: input_schema as Record<string, never>,
    })),
    ...(provider_tools
      ? providerTools(provider.provider, own, { model: config.model, hasTools: tools.length > 0 })
      : []),
  ];
  return {
    prompt: withCacheMarks(provider.provider, await promptOf(messages, attachments, form)),
    abortSignal,
    ...(offered.length > 0 ? { tools: offered } : {}),
    ...(wanted.max_output_tokens === undefined ? {} : { maxOutputTokens: wanted.max_output_tokens }),
    ...(wanted.temperature === undefined ? {} : { temperature: wanted.temperature }),
    ...(wanted.top_p === undefined ? {} : { topP: wanted.top_p }),
    ...(wanted.top_k === undefined ? {} : { topK: wanted.top_k }),
    ...(wanted.presence_penalty === undefined ? {} : { presencePenalty: wanted.presence_penalty }),
    ...(wanted.frequency_penalty === undefined ? {} : { frequencyPenalty: wanted.frequency_penalty }),
    ...(effort === undefined ? {} : { reasoning: effort }),
    providerOptions: providerOptions(provider.provider, own) as NonNullable<
      LanguageModelV4CallOptions["providerOptions"]
    >,
  };
};

/** What only this provider knows. Nothing is left behind at OpenAI: the history is ours. */
const providerOptions = (kind: string, own: Readonly<Record<string, unknown>> = {}): Record<string, unknown> => {
  const options = withoutOurs(own);
  if (kind === "openai") return { openai: { store: false, ...options } };
  return { [kind === "openai-compat" ? "openaiCompatible" : kind]: options };
};

/** The chat's choice, else the model's default, never above its maximum (facts/chats 4.3). */
export const effortFor = (effort: string, limits: { default?: Effort; max?: Effort } = {}): Effort | undefined => {
  const asked = EFFORTS.find((one) => one === effort) ?? limits.default;
  if (asked === undefined || limits.max === undefined) return asked;
  return EFFORTS.indexOf(asked) > EFFORTS.indexOf(limits.max) ? limits.max : asked;
};

function* eventsOf(
  part: LanguageModelV4StreamPart,
  names: Map<string, string>,
  { config: { context_limit }, provider: { provider } }: Call,
): Iterable<ModelEvent> {
  const metadata = metadataOf(part);
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
      if (!part.providerExecuted) names.set(part.id, part.toolName);
      return;
    case "tool-input-delta":
      // What a provider runs itself is told when it is complete.
      if (!names.has(part.id)) return;
      return yield { type: "tool_call_delta", id: part.id, name: names.get(part.id) ?? "", delta: part.delta };
    case "tool-call": {
      const call = { type: "tool_call", id: part.toolCallId, name: part.toolName } as const;
      const args = argumentsOf(part.input);
      if (!part.providerExecuted) return yield { ...call, args, input: part.input, ...metadata };
      return yield { ...call, args, provider_executed: true, metadata: keptWith(metadata.metadata, { provider }) };
    }
    case "tool-result": {
      const { toolCallId: id, toolName: name, result, isError: is_error = false } = part;
      const kept = keptWith(metadata.metadata, { provider, result });
      return yield { type: "tool_result", id, name, result: shownResult(result), is_error, metadata: kept };
    }
    case "source":
      if (part.sourceType === "url")
        yield { type: "source", source_id: part.id, url: part.url, title: part.title ?? "" };
      return;
    case "error":
      throw part.error;
    case "finish": {
      yield { type: "usage", usage: usageOf(part.usage, context_limit) };
      const reason = finishOf(part.finishReason);
      if (reason) yield { type: "finish", reason };
    }
  }
}

const metadataOf = (part: LanguageModelV4StreamPart): { metadata?: ProviderMetadata } =>
  "providerMetadata" in part && part.providerMetadata && Object.keys(part.providerMetadata).length > 0
    ? { metadata: part.providerMetadata as ProviderMetadata }
    : {};

type Finish = Extract<LanguageModelV4StreamPart, { type: "finish" }>;

/** Undefined when the provider has not said why it ended: then it has not ended, it broke off. */
const finishOf = ({
  unified,
  raw,
}: Finish["finishReason"]): Extract<ModelEvent, { type: "finish" }>["reason"] | undefined => {
  if (unified === "stop" || unified === "length") return unified;
  if (unified === "tool-calls") return "tool_calls";
  if (unified === "content-filter") return "content_filter";
  if (raw !== undefined && BROKEN_OFF.has(raw)) return undefined;
  return raw === undefined ? undefined : "stop";
};

/** What servers of open models say when they could not go on. */
const BROKEN_OFF: ReadonlySet<string> = new Set(["insufficient_system_resource", "abort", "error"]);

const usageOf = ({ inputTokens, outputTokens }: Finish["usage"], context_limit: number): ModelUsage => {
  const counted = {
    input_tokens: uncached(inputTokens),
    output_tokens: outputTokens.total,
    reasoning_tokens: outputTokens.reasoning,
    total_tokens:
      inputTokens.total === undefined || outputTokens.total === undefined
        ? undefined
        : inputTokens.total + outputTokens.total,
    cache_read_tokens: inputTokens.cacheRead,
    cache_creation_tokens: inputTokens.cacheWrite,
  };
  const known = Object.entries(counted).filter(([, count]) => typeof count === "number" && count > 0);
  return known.length === 0 ? {} : { ...Object.fromEntries(known), context_limit };
};

/** Clients add the cached ones themselves (facts/chats 5.6). */
const uncached = ({ total, noCache, cacheRead = 0, cacheWrite = 0 }: Finish["usage"]["inputTokens"]) =>
  noCache ?? (total === undefined ? undefined : Math.max(0, total - cacheRead - cacheWrite));

/** Anything that was thrown while a provider answered, as what callers may know of it. */
const modelErrorOf = (error: unknown, { provider, key, now }: Call): ModelError => {
  if (error instanceof ModelError) return error;
  const { status, headers, words, detail } = signalsOf(error);
  const ended_early = /without a finish reason/.test(words);
  const signal = { status, text: words, ended_early };
  const { kind, retryable } = classify(signal);
  return new ModelError(kind, withoutSecrets(detail, key), {
    retryable,
    provider: provider.provider,
    display_name: provider.display_name,
    status_code: status,
    retry_after_ms: retryAfter(headers, now()),
    reason: reasonOf(signal),
  });
};

type Thrown = {
  message?: unknown;
  code?: unknown;
  type?: unknown;
  statusCode?: unknown;
  responseHeaders?: Record<string, string>;
  responseBody?: unknown;
  cause?: unknown;
};

/**
 * The packages throw errors of their own, plain objects from inside a stream, and what the network throws. `words` is all that was said,
 * to tell the kind by; `detail` says it once, for people.
 */
const signalsOf = (error: unknown) => {
  const thrown = (typeof error === "object" && error !== null ? error : { message: String(error) }) as Thrown;
  const isPlain = !(error instanceof Error) && typeof error === "object";
  const cause = thrown.cause as Thrown | undefined;
  const said = [thrown.message, thrown.responseBody, isPlain ? JSON.stringify(error) : "", thrown.code, cause?.code];
  const texts = [...new Set(said)].filter((one): one is string => typeof one === "string" && one !== "");
  const code = [thrown.statusCode, thrown.code].find((one) => typeof one === "number" && one >= 300 && one < 600);
  return {
    status: code as number | undefined,
    headers: thrown.responseHeaders,
    words: texts.join(" "),
    detail: saidOnce(texts),
  };
};
