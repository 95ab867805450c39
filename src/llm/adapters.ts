// The adapter of each kind of provider: how its package creates a model. Packages are loaded with the first call, not at start.
import type { LanguageModelV4 } from "@ai-sdk/provider";
import type { Clock } from "#base/clock.ts";
import type { ProviderKind } from "#schema/chats/model-provider.ts";
import { countedFetch } from "./answer-limits.ts";
import { normalizeEvents } from "./anthropic-events.ts";
import { Bypass } from "./bypass.ts";
import { normalizeChunks } from "./chat-chunks.ts";
import type { GuardedFetch } from "./fetch.ts";
import { convertUsage } from "./usage.ts";

type AdapterInput = {
  /** Empty for the provider's default address. */
  readonly base_url: string;
  readonly key: string;
  readonly model: string;
  /** OpenAI only: uses the Responses API. */
  readonly useResponses: boolean;
  readonly fetch: GuardedFetch;
  readonly clock: Clock;
};

/** True for kinds that refuse every call without a key, so that no call is made. A self-hosted server may need no key. */
export const requiresKey = (kind: ProviderKind): boolean => kind !== "openai-compat" && kind !== "demo";

/** True for kinds without a default address. */
export const requiresBaseUrl = (kind: ProviderKind): boolean => kind === "openai-compat";

/** What a request may contain, and the bypass for text of its response, if any. */
type AdapterForm = { readonly streamOptions: boolean; readonly bypass?: Bypass | undefined };

/** A provider's model, for one request. */
export type Adapter = { readonly model: (form: AdapterForm) => LanguageModelV4 };

/** Returns a bypass; undefined for kinds whose package reads everything. */
export const createBypass = (kind: ProviderKind): Bypass | undefined =>
  kind === "openai-compat" ? new Bypass() : undefined;

/** Throws for `demo`, which has no adapter. */
export const loadAdapter = async (kind: ProviderKind, input: AdapterInput): Promise<Adapter> => {
  const { base_url, key: apiKey, model, useResponses } = input;
  const fetch = countedFetch(input.clock, input.fetch) as typeof globalThis.fetch;
  const createChatFetch = ({ streamOptions, bypass }: AdapterForm) => {
    const normalized = normalizeChunks(input.fetch, bypass);
    return (streamOptions ? normalized : omitStreamOptions(normalized)) as typeof globalThis.fetch;
  };
  const common = { apiKey, fetch, ...(base_url === "" ? {} : { baseURL: base_url }) };
  switch (kind) {
    case "anthropic": {
      const { createAnthropic } = await import("@ai-sdk/anthropic");
      const normalized = normalizeEvents(input.fetch) as typeof globalThis.fetch;
      return { model: () => createAnthropic({ ...common, fetch: normalized })(model) };
    }
    case "openai": {
      const { createOpenAI } = await import("@ai-sdk/openai");
      if (useResponses) return { model: () => createOpenAI(common).responses(model) };
      return { model: (form) => createOpenAI({ ...common, fetch: createChatFetch(form) }).chat(model) };
    }
    case "google": {
      const { createGoogleGenerativeAI } = await import("@ai-sdk/google");
      return { model: () => createGoogleGenerativeAI(common)(model) };
    }
    case "openai-compat": {
      const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
      const credentials = apiKey === "" ? {} : { apiKey };
      const options = { name: "openaiCompatible", baseURL: base_url, includeUsage: true, convertUsage, ...credentials };
      return { model: (form) => createOpenAICompatible({ ...options, fetch: createChatFetch(form) })(model) };
    }
    case "demo":
      throw new Error("the demo model is built in");
  }
};

/** The packages always request usage at the end of a stream, which some servers refuse. */
const omitStreamOptions =
  (fetch: GuardedFetch): GuardedFetch =>
  (input, init) => {
    if (typeof init?.body !== "string") return fetch(input, init);
    const { stream_options: _, ...rest } = JSON.parse(init.body) as Record<string, unknown>;
    return fetch(input, { ...init, body: JSON.stringify(rest) });
  };
