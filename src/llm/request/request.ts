// Builds a request to a model: the history, the tools and the settings in the form that its server accepts. The provider's package
// serializes it to JSON. Requests are built only here.
import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import { EFFORTS, type Effort } from "#schema/chats/model-config.ts";
import type { ModelFeature } from "#schema/chats/model-feature.ts";
import type { LoadAttachment } from "../attachments.ts";
import { addCacheMarks } from "../cache-marks.ts";
import type { ConfiguredModel, ConfiguredProvider } from "../configured-model.ts";
import type { RequestForm } from "../fallbacks.ts";
import type { ModelRequest } from "../model.ts";
import { buildPrompt } from "../prompt.ts";
import { omitOwnOptions, toProviderTools } from "../provider-tools.ts";
import { toMessages } from "./messages.ts";
import { getReceiver, MISTRAL, type Receiver } from "./receivers.ts";
import { createRequestTools, type RequestTools } from "./tools.ts";

type RequestCall = {
  readonly provider: ConfiguredProvider;
  readonly config: ConfiguredModel;
  readonly loadAttachment: LoadAttachment;
};

export type FormedRequest = {
  readonly options: LanguageModelV4CallOptions;
  readonly tools: RequestTools;
  /** The optional features that it contains. */
  readonly sent: ReadonlySet<ModelFeature>;
};

/** Builds the request. Reads the attachments in the history. */
export const buildRequest = async (
  { config, provider, loadAttachment }: RequestCall,
  { messages, tools, provider_tools = false, reasoning_effort }: ModelRequest,
  form: RequestForm,
  abortSignal: AbortSignal,
): Promise<FormedRequest> => {
  const { unsupported } = form;
  const { model_config: modelConfig, model } = config;
  const kind = provider.provider;
  const ownOptions = modelConfig.provider_options;
  const receiver = findReceiver({ config, provider, loadAttachment }, unsupported);
  const providerTools =
    provider_tools && !unsupported.has("tools")
      ? toProviderTools(kind, ownOptions, { model, hasTools: tools.length > 0 })
      : [];
  const requestTools = createRequestTools(receiver, unsupported.has("tools") ? [] : tools, {
    messages,
    reserved: providerTools.map(({ name }) => name),
  });
  const allTools = [...requestTools.offered.map((one) => ({ type: "function" as const, ...one })), ...providerTools];
  const prompt = toMessages(await buildPrompt(messages, loadAttachment, { ...form, kind }), {
    receiver,
    getOfferedName: (name) => requestTools.getOfferedName(name),
    toOfferedArgs: (name, args) => requestTools.toOfferedArgs(name, args),
    hasTools: requestTools.offered.length > 0,
    hasSystem: !unsupported.has("system_role"),
  });
  const effort = unsupported.has("reasoning_effort") ? undefined : findEffort(reasoning_effort, modelConfig.reasoning);
  const settings = toSettings(modelConfig, unsupported);
  const options: LanguageModelV4CallOptions = {
    prompt: addCacheMarks(kind, prompt),
    abortSignal,
    ...(allTools.length > 0 ? { tools: allTools as NonNullable<LanguageModelV4CallOptions["tools"]> } : {}),
    ...Object.fromEntries(settings.map(({ option, value }) => [option, value])),
    ...(effort === undefined ? {} : { reasoning: effort }),
    providerOptions: toOptions(kind, ownOptions, unsupported) as NonNullable<
      LanguageModelV4CallOptions["providerOptions"]
    >,
  };
  const sent = new Set<ModelFeature>([
    ...settings.map(({ feature }) => feature),
    ...(allTools.length > 0 ? (["tools"] as const) : []),
    ...(effort === undefined ? [] : (["reasoning_effort"] as const)),
    ...ALWAYS_SENT.filter((feature) => !unsupported.has(feature)),
  ]);
  return { options, tools: requestTools, sent };
};

/** Optional features that every request may contain. */
const ALWAYS_SENT = [
  "stream_options",
  "parallel_tool_calls",
  "tool_streaming",
  "system_role",
  "long_tool_call_ids",
  "user_after_tool",
] as const;

const findReceiver = ({ config, provider }: RequestCall, unsupported: ReadonlySet<ModelFeature>): Receiver => {
  const { base_url, provider: kind } = provider;
  const useResponses = shouldUseResponses(config);
  const receiver = getReceiver(kind, { useResponses, base_url, model: config.model });
  const { callId, makeCallId } = unsupported.has("long_tool_call_ids") ? MISTRAL : receiver;
  return {
    ...receiver,
    callId,
    makeCallId,
    userAfterTool: receiver.userAfterTool && !unsupported.has("user_after_tool"),
  };
};

export const shouldUseResponses = ({ model_config }: ConfiguredModel): boolean =>
  model_config.provider_options?.use_responses_api !== false;

const SETTINGS = [
  { feature: "max_output_tokens", option: "maxOutputTokens" },
  { feature: "temperature", option: "temperature" },
  { feature: "top_p", option: "topP" },
  { feature: "top_k", option: "topK" },
  { feature: "presence_penalty", option: "presencePenalty" },
  { feature: "frequency_penalty", option: "frequencyPenalty" },
] as const;

const toSettings = (modelConfig: ConfiguredModel["model_config"], unsupported: ReadonlySet<ModelFeature>) =>
  SETTINGS.flatMap(({ feature, option }) => {
    const value = modelConfig[feature];
    return value === undefined || unsupported.has(feature) ? [] : [{ feature, option, value }];
  });

const PARALLEL = ["parallel_tool_calls", "parallelToolCalls", "disableParallelToolUse"];

/** Returns provider-specific options. Nothing is stored at OpenAI, because the history is kept here. */
const toOptions = (
  kind: string,
  ownOptions: Readonly<Record<string, unknown>> = {},
  unsupported: ReadonlySet<ModelFeature>,
): Record<string, unknown> => {
  const isSent = (name: string): boolean => !(unsupported.has("parallel_tool_calls") && PARALLEL.includes(name));
  const options = Object.fromEntries(Object.entries(omitOwnOptions(ownOptions)).filter(([name]) => isSent(name)));
  if (kind === "openai") return { openai: { store: false, ...options } };
  if (kind === "anthropic" && unsupported.has("tool_streaming"))
    return { anthropic: { ...options, toolStreaming: false } };
  return { [kind === "openai-compat" ? "openaiCompatible" : kind]: options };
};

/** Returns the chat's effort, otherwise the model's default, limited to its maximum (facts/chats 4.3). */
const findEffort = (effort: string, limits: { default?: Effort; max?: Effort } = {}): Effort | undefined => {
  const requestedEffort = EFFORTS.find((one) => one === effort) ?? limits.default;
  if (requestedEffort === undefined || limits.max === undefined) return requestedEffort;
  return EFFORTS.indexOf(requestedEffort) > EFFORTS.indexOf(limits.max) ? limits.max : requestedEffort;
};
