// One line for each kind of provider: how its package is asked for a model. Packages are loaded with the first call, not at start.
import type { LanguageModelV4 } from "@ai-sdk/provider";
import type { ProviderKind } from "#schema/chats/model-provider.ts";
import { soundChunks } from "./chat-chunks.ts";
import type { GuardedFetch } from "./fetch.ts";
import { convertUsage } from "./usage.ts";

type Input = {
  /** Empty: the provider's own address. */
  readonly base_url: string;
  readonly key: string;
  readonly model: string;
  /** OpenAI alone: its newer API. */
  readonly useResponses: boolean;
  readonly fetch: GuardedFetch;
};

/** Kinds that refuse every call without a key, so that none is made. A server of one's own may well need none. */
export const needsKey = (kind: ProviderKind): boolean => kind !== "openai-compat" && kind !== "demo";

/** Kinds that have no address of their own. */
export const needsBaseUrl = (kind: ProviderKind): boolean => kind === "openai-compat";

/** Throws for `demo`, which needs no adapter. */
export const adapterOf = async (kind: ProviderKind, input: Input): Promise<LanguageModelV4> => {
  const { base_url, key: apiKey, model, useResponses } = input;
  const fetch = input.fetch as typeof globalThis.fetch;
  const sound = soundChunks(input.fetch) as typeof globalThis.fetch;
  const common = { apiKey, fetch, ...(base_url === "" ? {} : { baseURL: base_url }) };
  switch (kind) {
    case "anthropic": {
      const { createAnthropic } = await import("@ai-sdk/anthropic");
      return createAnthropic(common)(model);
    }
    case "openai": {
      const { createOpenAI } = await import("@ai-sdk/openai");
      const openai = createOpenAI(common);
      if (useResponses) return openai.responses(model);
      return createOpenAI({ ...common, fetch: sound }).chat(model);
    }
    case "google": {
      const { createGoogleGenerativeAI } = await import("@ai-sdk/google");
      return createGoogleGenerativeAI(common)(model);
    }
    case "openai-compat": {
      const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
      const credentials = apiKey === "" ? {} : { apiKey };
      const server = createOpenAICompatible({
        name: "openaiCompatible",
        baseURL: base_url,
        fetch: sound,
        includeUsage: true,
        convertUsage,
        ...credentials,
      });
      return server(model);
    }
    case "demo":
      throw new Error("the demo model is built in");
  }
};
