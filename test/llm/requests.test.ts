// Every request is valid for its receiver: random histories through the providers' own packages, checked against the receivers' documented
// rules. `SLIPWAY_TEST_HISTORIES` sets their number.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { systemClock } from "#base/clock.ts";
import type { ProviderKind } from "#schema/chats/model-provider.ts";
import { loadAdapter } from "#src/llm/adapters.ts";
import { loadNoAttachment } from "#src/llm/attachments.ts";
import type { ModelEvent, ModelRequest } from "#src/llm/model.ts";
import { streamModel } from "#src/llm/stream.ts";
import { frame, type Protocol, toOpening } from "#test/support/models/model-frames.ts";
import { histories, toolSets } from "#test/support/models/random-histories.ts";
import { findRefusal, RECEIVERS, type ReceiverName } from "#test/support/models/receiver-rules.ts";
import type { Json } from "#test/support/models/tool-rules.ts";
import { scaleTimeout } from "#test/support/pace.ts";

const HISTORIES = Number(process.env.SLIPWAY_TEST_HISTORIES ?? 1_000);
const NAMES = Object.keys(RECEIVERS) as ReceiverName[];

type Kind = { readonly kind: ProviderKind; readonly protocol: Protocol; readonly useResponses?: boolean };
const KINDS: Partial<Record<ReceiverName, Kind>> = {
  anthropic: { kind: "anthropic", protocol: "anthropic" },
  responses: { kind: "openai", protocol: "responses", useResponses: true },
  openai: { kind: "openai", protocol: "openai" },
  google: { kind: "google", protocol: "google" },
};
const MODELS: Partial<Record<ReceiverName, string>> = {
  google: "gemini-3-pro",
  mistral: "devstral-medium",
  kimi: "kimi-k2-thinking",
};

/** Features whose rejection can only be learned from the server. */
const LEARNED_REJECTIONS = /reasoning_content|image/;

type RecordedRequests = { readonly bodies: Json[]; readonly refused: string[]; readonly events: ModelEvent[] };

/** Sends the request to a server that rejects the same requests as this receiver. */
const recordRequests = async (
  name: ReceiverName,
  request: Pick<ModelRequest, "messages" | "tools">,
): Promise<RecordedRequests> => {
  const { kind, protocol, useResponses = false } = KINDS[name] ?? { kind: "openai-compat", protocol: "openai" };
  const model = MODELS[name] ?? "test-model";
  const recorded: RecordedRequests = { bodies: [], refused: [], events: [] };
  const fetch = async (_: unknown, init?: RequestInit): Promise<Response> => {
    const body = JSON.parse(String(init?.body)) as Json;
    recorded.bodies.push(body);
    const refusal = findRefusal(name, body, model);
    if (refusal) {
      const text = JSON.stringify(refusal.body);
      recorded.refused.push(text);
      return new Response(text, { status: refusal.status });
    }
    const answer = `${toOpening(protocol)}${frame(protocol, { text: "hi" })}${frame(protocol, { finish: "stop" }, 1)}`;
    return new Response(answer, { headers: { "content-type": "text/event-stream" } });
  };
  const adapter = loadAdapter(kind, {
    base_url: "http://models.example/v1",
    key: "k",
    model,
    useResponses,
    fetch,
    clock: systemClock,
  });
  const provider = { id: "p", provider: kind, display_name: "P", base_url: "", enabled: true, has_api_key: true };
  const config = {
    id: "m",
    provider_id: "p",
    model,
    display_name: "M",
    enabled: true,
    is_default: true,
    context_limit: 64_000,
    compression_threshold: null,
    model_config: { provider_options: { use_responses_api: useResponses } },
  };
  const call = {
    provider: { ...provider, key: () => "k" },
    config,
    adapter,
    key: "k",
    loadAttachment: loadNoAttachment,
    now: () => 0,
    onRefused: () => {},
  };
  const fullRequest: ModelRequest = {
    ...request,
    payer: { user_id: "u", chat_key: 1, kind: "chat_turn" },
    model_id: "m",
    reasoning_effort: "",
    attempt: 1,
    signal: new AbortController().signal,
  };
  for await (const event of streamModel(call, fullRequest)) recorded.events.push(event);
  return recorded;
};

describe("random histories", () => {
  test(
    "[MO-63] no provider refuses a request from any history for a documented reason",
    async () => {
      await fc.assert(
        fc.asyncProperty(fc.constantFrom(...NAMES), histories, toolSets, async (name, messages, tools) => {
          const { refused, events } = await recordRequests(name, { messages, tools });
          expect(refused.filter((text) => !LEARNED_REJECTIONS.test(text))).toEqual([]);
          expect(events.at(-1)).toMatchObject({ type: "finish", reason: "stop" });
        }),
        { numRuns: HISTORIES },
      );
    },
    scaleTimeout(60_000 + HISTORIES * 20),
  );
});
