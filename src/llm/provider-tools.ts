// Tools that a provider runs itself while its model answers, such as web search, if a model's options enable them. Their results are shown
// in short; the data that the provider requires back is stored with them (facts/chats 5.1, 5.8; rules MO-36, MO-37). Pure.
import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import type { ProviderKind } from "#schema/chats/model-provider.ts";
import type { ProviderMetadata } from "./model.ts";

type Tools = NonNullable<LanguageModelV4CallOptions["tools"]>;
type Options = Readonly<Record<string, unknown>>;

/** Options of a model that are not sent to the provider. */
const OWN_OPTIONS: ReadonlySet<string> = new Set([
  ...["use_responses_api", "web_search_enabled", "allowed_domains", "blocked_domains"],
]);

export const omitOwnOptions = (options: Options): Options =>
  Object.fromEntries(Object.entries(options).filter(([name]) => !OWN_OPTIONS.has(name)));

const toList = (value: unknown): string[] | undefined => {
  const texts = Array.isArray(value) ? value.filter((one): one is string => typeof one === "string" && one !== "") : [];
  return texts.length > 0 ? texts : undefined;
};

/** Google's models that support its search together with other tools; a request to another model would lose all other tools. */
const COMBINES_TOOLS = /gemini-([3-9]|\d\d)/i;

/** Returns the tools to offer; empty if the kind has none or the model's options enable none. */
export const toProviderTools = (
  kind: ProviderKind,
  options: Options = {},
  { model, hasTools }: { readonly model: string; readonly hasTools: boolean },
): Tools => {
  if (options.web_search_enabled !== true) return [];
  const allowedDomains = toList(options.allowed_domains);
  const blockedDomains = allowedDomains ? undefined : toList(options.blocked_domains);
  const domains = { ...(allowedDomains ? { allowedDomains } : {}), ...(blockedDomains ? { blockedDomains } : {}) };
  switch (kind) {
    case "anthropic":
      return [{ type: "provider", id: "anthropic.web_search_20250305", name: "web_search", args: domains }];
    case "openai": {
      if (options.use_responses_api === false) return [];
      const args = allowedDomains ? { filters: { allowedDomains } } : {};
      return [{ type: "provider", id: "openai.web_search", name: "web_search", args }];
    }
    case "google":
      if (hasTools && !COMBINES_TOOLS.test(model)) return [];
      return [{ type: "provider", id: "google.google_search", name: "web_search", args: {} }];
    default:
      return [];
  }
};

/** Stored with a provider-executed call: the kind of provider, and its complete result. */
type StoredExecution = { readonly provider: string; readonly result?: unknown };
const METADATA_KEY = "slipway";

export const addStoredExecution = (
  metadata: ProviderMetadata | undefined,
  stored: StoredExecution,
): ProviderMetadata => ({
  ...metadata,
  [METADATA_KEY]: stored,
});

/** Returns the data to send back to this kind of provider; undefined if another one ran the call. */
export const findStoredExecution = (
  kind: string,
  metadata: ProviderMetadata | undefined,
): { readonly options: ProviderMetadata; readonly result: unknown } | undefined => {
  const { [METADATA_KEY]: stored, ...options } = metadata ?? {};
  const { provider, result } = (stored ?? {}) as Partial<StoredExecution>;
  return provider === kind ? { options, result } : undefined;
};

/** Returns a result for users, without data that only the provider can read. */
export const toReadableResult = (value: unknown): unknown => {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(toReadableResult);
  const readable = Object.entries(value).filter(([name]) => !/^encrypted/i.test(name));
  return Object.fromEntries(readable.map(([name, one]) => [name, toReadableResult(one)]));
};
