// Runs one call of a configured model and yields the events of model.ts. All errors become `ModelError`. The connection is closed as soon
// as the reader stops.

import type { ModelFeature } from "#schema/chats/model-feature.ts";
import { type Adapter, bypassFor } from "./adapters.ts";
import { AnswerEvents } from "./answer-events.ts";
import { AnswerReader } from "./answer-reader.ts";
import type { Attachments } from "./attachments.ts";
import { BrokenChunks } from "./broken-chunks.ts";
import { findSignals, toModelError } from "./call-failure.ts";
import type { ConfiguredModel, ConfiguredProvider } from "./configured-model.ts";
import { fallbackFor, initialManner, type Manner } from "./fallbacks.ts";
import { ModelError, type ModelEvent, type ModelRequest } from "./model.ts";
import { formRequest, usesResponses } from "./request/request.ts";
import { ThinkTags } from "./think-tags.ts";

export type Call = {
  readonly provider: ConfiguredProvider;
  readonly config: ConfiguredModel;
  readonly adapter: Promise<Adapter>;
  readonly key: string;
  readonly attachments: Attachments;
  readonly now: () => number;
  /** Called when the model's server has refused these features and accepted the request without them. */
  readonly onRefused: (features: readonly ModelFeature[]) => void;
};

/** Throws `ModelError`, also if the provider did not signal the end of its response, or refused without text. */
export async function* streamModel(call: Call, request: ModelRequest): AsyncGenerator<ModelEvent> {
  const gone = new AbortController();
  const signal = AbortSignal.any([request.signal, gone.signal]);
  try {
    const { answer, tools } = await startedBy(call, request, signal);
    if (tools.warnings.length > 0) yield { type: "warnings", warnings: tools.warnings };
    const { provider, config } = call;
    const events = new AnswerEvents({ provider: provider.provider, context_limit: config.context_limit, tools });
    const broken = new BrokenChunks();
    const tags = sendsTags(call) ? new ThinkTags() : undefined;
    let spoke = false;
    for (;;) {
      const next = await answer.next();
      const part = "words" in next ? undefined : next;
      if (part && broken.isOne(part)) continue;
      const said = "words" in next ? next.words : events.read(next);
      for (const event of tags ? tagged(tags, said) : said) {
        if (event.type === "finish" && event.reason === "content_filter" && !spoke) throw makeRefusal(call);
        spoke ||= event.type !== "usage" && event.type !== "finish";
        yield event;
        if (event.type === "finish") return;
      }
    }
  } catch (error) {
    if (request.signal.aborted) throw request.signal.reason;
    throw toModelError(error, call);
  } finally {
    gone.abort();
  }
}

/** The form of requests that worked for each model. Permanent limitations are also stored in its settings. */
const learned = new WeakMap<Adapter, Manner>();
/** Maximum number of requests for one answer, each with fewer features than the previous. */
const MAX_TRIES = 8;

const startedBy = async (call: Call, request: ModelRequest, signal: AbortSignal) => {
  const { provider, config } = call;
  const adapter = await call.adapter;
  const { unsupported = [] } = config.model_config;
  const known = { useResponses: usesResponses(config), unsupported };
  let manner = learned.get(adapter) ?? initialManner(provider.provider, known);
  let lasting = manner;
  const refused: ModelFeature[] = [];
  for (let left = MAX_TRIES; ; left -= 1) {
    const formed = await formRequest(call, request, manner, signal);
    const bypass = bypassFor(provider.provider);
    try {
      const { stream } = await adapter
        .model({ streamOptions: !manner.unsupported.has("stream_options"), bypass })
        .doStream(formed.options);
      learned.set(adapter, lasting);
      if (refused.length > 0) call.onRefused(refused);
      return { answer: new AnswerReader(stream, bypass), tools: formed.tools };
    } catch (error) {
      const { options, sent } = formed;
      const next = fallbackFor(manner, { ...findSignals(error), prompt: options.prompt, sent });
      if (!next || left === 0 || signal.aborted) throw error;
      manner = { ...manner, ...next.change };
      if (next.isForGood) lasting = { ...lasting, ...next.change };
      if (next.feature) refused.push(next.feature);
    }
  }
};

/** The providers' own APIs separate reasoning; servers of open models may not. */
const sendsTags = ({ provider: { provider, base_url } }: Call): boolean =>
  provider === "openai-compat" || base_url !== "";

function* tagged(tags: ThinkTags, events: Iterable<ModelEvent>): Iterable<ModelEvent> {
  for (const event of events) yield* tags.add(event);
}

const makeRefusal = ({ provider: { provider, display_name } }: Call): ModelError =>
  new ModelError("content_filter", "", { provider, display_name });
