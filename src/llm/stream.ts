// Runs one call of a configured model and yields the events of model.ts. All errors become `ModelError`. The connection is closed as soon
// as the reader stops.

import type { ModelFeature } from "#schema/chats/model-feature.ts";
import { type Adapter, createBypass } from "./adapters.ts";
import { AnswerEvents } from "./answer-events.ts";
import { AnswerReader } from "./answer-reader.ts";
import type { LoadAttachment } from "./attachments.ts";
import { BrokenChunks } from "./broken-chunks.ts";
import { findSignals, toModelError } from "./call-failure.ts";
import type { ConfiguredModel, ConfiguredProvider } from "./configured-model.ts";
import { findFallback, type RequestForm, toInitialForm } from "./fallbacks.ts";
import { ModelError, type ModelEvent, type ModelRequest } from "./model.ts";
import { buildRequest, type FormedRequest, shouldUseResponses } from "./request/request.ts";
import { ThinkTags } from "./think-tags.ts";

export type Call = {
  readonly provider: ConfiguredProvider;
  readonly config: ConfiguredModel;
  readonly adapter: Promise<Adapter>;
  readonly key: string;
  readonly loadAttachment: LoadAttachment;
  readonly now: () => number;
  /** Called when the model's server has refused these features and accepted the request without them. */
  readonly onRefused: (features: readonly ModelFeature[]) => void;
};

/** Throws `ModelError`, also if the provider did not signal the end of its response, or refused without text. */
export async function* streamModel(call: Call, request: ModelRequest): AsyncGenerator<ModelEvent> {
  const consumerLeft = new AbortController();
  const signal = AbortSignal.any([request.signal, consumerLeft.signal]);
  try {
    const { answer, tools } = await startCall(call, request, signal);
    if (tools.warnings.length > 0) yield { type: "warnings", warnings: tools.warnings };
    const { provider, config } = call;
    const events = new AnswerEvents({ provider: provider.provider, context_limit: config.context_limit, tools });
    const broken = new BrokenChunks();
    const tags = mayContainTags(call) ? new ThinkTags() : undefined;
    let hasContent = false;
    for (;;) {
      const next = await answer.next();
      const part = "words" in next ? undefined : next;
      if (part && broken.isOne(part)) continue;
      const newEvents = "words" in next ? next.words : events.read(next);
      for (const event of tags ? splitTags(tags, newEvents) : newEvents) {
        if (event.type === "finish" && event.reason === "content_filter" && !hasContent) throw createRefusal(call);
        hasContent ||= event.type !== "usage" && event.type !== "finish";
        yield event;
        if (event.type === "finish") return;
      }
    }
  } catch (error) {
    if (request.signal.aborted) throw request.signal.reason;
    throw toModelError(error, call);
  } finally {
    consumerLeft.abort();
  }
}

/** The form of requests that worked for each model. Permanent limitations are also stored in its settings. */
const learnedForms = new WeakMap<Adapter, RequestForm>();
/** Maximum number of requests for one answer, each with fewer features than the previous. */
const MAX_TRIES = 8;

const startCall = async (call: Call, request: ModelRequest, signal: AbortSignal) => {
  const { provider, config } = call;
  const adapter = await call.adapter;
  const { unsupported = [] } = config.model_config;
  const capabilities = { useResponses: shouldUseResponses(config), unsupported };
  let form = learnedForms.get(adapter) ?? toInitialForm(provider.provider, capabilities);
  let lastingForm = form;
  const refusedFeatures: ModelFeature[] = [];
  for (let remainingTries = MAX_TRIES; ; remainingTries -= 1) {
    const formed = await buildRequest(call, request, form, signal);
    const bypass = createBypass(provider.provider);
    signal.throwIfAborted();
    request.onSend?.();
    try {
      const { stream } = await adapter
        .model({ streamOptions: !form.unsupported.has("stream_options"), bypass })
        .doStream(formed.options);
      learnedForms.set(adapter, lastingForm);
      freeFiles(formed);
      request.memory?.hold.resize(request.memory.text_bytes);
      if (refusedFeatures.length > 0) call.onRefused(refusedFeatures);
      return { answer: new AnswerReader(stream, bypass), tools: formed.tools };
    } catch (error) {
      const { options, sent } = formed;
      const next = findFallback(form, { ...findSignals(error), prompt: options.prompt, sent });
      if (!next || remainingTries === 0 || signal.aborted) throw error;
      form = { ...form, ...next.change };
      if (next.isPermanent) lastingForm = { ...lastingForm, ...next.change };
      if (next.feature) refusedFeatures.push(next.feature);
    }
  }
};

/** Frees the attachments: the provider has them, and the answer may take minutes. */
const freeFiles = ({ options: { prompt } }: FormedRequest): void => {
  for (const { content } of prompt) {
    if (typeof content === "string") continue;
    for (const part of content) {
      const output = part.type === "tool-result" ? part.output : undefined;
      const files = [part, ...(output?.type === "content" ? output.value : [])];
      for (const file of files) if (file.type === "file") file.data = NO_DATA;
    }
  }
};

const NO_DATA = { type: "data", data: new Uint8Array() } as const;

/** The providers' own APIs separate reasoning; servers of open models may not. */
const mayContainTags = ({ provider: { provider, base_url } }: Call): boolean =>
  provider === "openai-compat" || base_url !== "";

function* splitTags(tags: ThinkTags, events: Iterable<ModelEvent>): Iterable<ModelEvent> {
  for (const event of events) yield* tags.add(event);
}

const createRefusal = ({ provider: { provider, display_name } }: Call): ModelError =>
  new ModelError("content_filter", "", { provider, display_name });
