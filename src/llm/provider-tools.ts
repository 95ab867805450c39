// Tools that a provider runs on its own while its model answers: searching the web, where a model's options ask for it. What they answer is
// shown in short; what the provider wants back with the history is kept alongside it (facts/chats 5.1, 5.8; rules MO-36, MO-37). Pure.
import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import type { ProviderKind } from "#schema/chats/model-provider.ts";
import type { ProviderMetadata } from "./model.ts";

type Tools = NonNullable<LanguageModelV4CallOptions["tools"]>;
type Options = Readonly<Record<string, unknown>>;

/** Options of a model that are for us and not for the provider. */
const OURS: ReadonlySet<string> = new Set([
  ...["use_responses_api", "web_search_enabled", "allowed_domains", "blocked_domains"],
]);

export const withoutOurs = (options: Options): Options =>
  Object.fromEntries(Object.entries(options).filter(([name]) => !OURS.has(name)));

const toList = (value: unknown): string[] | undefined => {
  const words = Array.isArray(value) ? value.filter((one): one is string => typeof one === "string" && one !== "") : [];
  return words.length > 0 ? words : undefined;
};

/** Google's models that take its search alongside tools of ours; the others would lose all of ours. */
const TAKES_BOTH = /gemini-([3-9]|\d\d)/i;

/** The tools to offer; none for kinds that have none, and where the model's options do not ask for any. */
export const providerTools = (
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
      if (hasTools && !TAKES_BOTH.test(model)) return [];
      return [{ type: "provider", id: "google.google_search", name: "web_search", args: {} }];
    default:
      return [];
  }
};

/** What is kept with a call that a provider has run: whose it is, and its whole result. */
type Kept = { readonly provider: string; readonly result?: unknown };
const KEY = "slipway";

export const keptWith = (metadata: ProviderMetadata | undefined, kept: Kept): ProviderMetadata => ({
  ...metadata,
  [KEY]: kept,
});

/** What goes back to this kind of provider; undefined when another one has run the call. */
export const keptFor = (
  kind: string,
  metadata: ProviderMetadata | undefined,
): { readonly options: ProviderMetadata; readonly result: unknown } | undefined => {
  const { [KEY]: kept, ...options } = metadata ?? {};
  const { provider, result } = (kept ?? {}) as Partial<Kept>;
  return provider === kind ? { options, result } : undefined;
};

/** A result as people see it: without what only the provider can read. */
export const shownResult = (value: unknown): unknown => {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(shownResult);
  const readable = Object.entries(value).filter(([name]) => !/^encrypted/i.test(name));
  return Object.fromEntries(readable.map(([name, one]) => [name, shownResult(one)]));
};
