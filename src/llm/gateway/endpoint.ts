// The endpoints of model APIs that the gateway forwards, by dialect. All others are refused: a provider stores files, batches and responses
// for its key, which all callers of the gateway share. Pure.
import { trimEnd } from "#base/text/trim.ts";
import type { ProviderKind } from "#schema/chats/model-provider.ts";

export const DIALECTS = ["anthropic", "openai", "google"] as const;
export type Dialect = (typeof DIALECTS)[number];

/** The kinds of providers that support each dialect. */
export const KINDS_OF: Readonly<Record<Dialect, readonly ProviderKind[]>> = {
  anthropic: ["anthropic"],
  openai: ["openai", "openai-compat"],
  google: ["google"],
};

/** The default base URL of each provider's API. */
export const DEFAULT_BASE_URL: Readonly<Partial<Record<ProviderKind, string>>> = {
  anthropic: "https://api.anthropic.com/v1",
  openai: "https://api.openai.com/v1",
  google: "https://generativelanguage.googleapis.com/v1beta",
};

/**
 * `generate`: a model call that costs money. `embed`: the same for embeddings. `count`: counts the tokens of a prompt, for free. `models`:
 * the names that callers can use, answered by the gateway. `probe`: checks whether the gateway responds.
 */
export type EndpointKind = "generate" | "embed" | "count" | "models" | "probe";

/** The format in which a response reports its usage. */
export type UsageFormat = "anthropic" | "openai_chat" | "openai_responses" | "openai_embeddings" | "google";

export type Endpoint = {
  readonly dialect: Dialect;
  readonly kind: EndpointKind;
  /** The path after the provider's base URL. `{model}` stands for the model if the dialect has it in the path. */
  readonly path: string;
  readonly usage?: UsageFormat;
  /** The model in the path; other dialects have it in the body. */
  readonly model?: string;
  /** True if the path requests a stream; other dialects request it in the body. */
  readonly streams?: boolean;
};

type Row = readonly [method: string, path: string, kind: EndpointKind, usage?: UsageFormat];

const TABLE: Readonly<Record<Exclude<Dialect, "google">, readonly Row[]>> = {
  anthropic: [
    ["POST", "/messages", "generate", "anthropic"],
    ["POST", "/messages/count_tokens", "count"],
    ["GET", "/models", "models"],
  ],
  openai: [
    ["POST", "/chat/completions", "generate", "openai_chat"],
    ["POST", "/responses", "generate", "openai_responses"],
    ["POST", "/embeddings", "embed", "openai_embeddings"],
    ["GET", "/models", "models"],
  ],
};

const GOOGLE_VERBS: Readonly<Record<string, readonly [kind: EndpointKind, streams: boolean]>> = {
  generateContent: ["generate", false],
  streamGenerateContent: ["generate", true],
  countTokens: ["count", false],
  embedContent: ["embed", false],
  batchEmbedContents: ["embed", false],
};

/** Returns the endpoint for a path after `/ai/<dialect>`; undefined if the gateway does not forward it. */
export const findEndpoint = (dialect: Dialect, method: string, path: string): Endpoint | undefined => {
  const trimmed = trimEnd(path, "/");
  if (trimmed === "" && (method === "HEAD" || method === "GET")) return { dialect, kind: "probe", path: "" };
  // SDKs add the version before each path, or expect it in the base URL.
  const rest = trimmed.replace(/^\/v1(?:beta|alpha)?(?=\/|$)/, "");
  if (dialect === "google") return findGoogleEndpoint(method, rest);
  const row = TABLE[dialect].find(([rowMethod, rowPath]) => rowMethod === method && rowPath === rest);
  return row && { dialect, kind: row[2], path: row[1], ...(row[3] ? { usage: row[3] } : {}) };
};

const findGoogleEndpoint = (method: string, rest: string): Endpoint | undefined => {
  if (method === "GET" && rest === "/models") return { dialect: "google", kind: "models", path: "/models" };
  const [, model, verb = ""] = /^\/models\/([^/:]+):(\w+)$/.exec(rest) ?? [];
  const found = GOOGLE_VERBS[verb];
  const name = model === undefined ? undefined : tryDecode(model);
  if (method !== "POST" || name === undefined || !found) return undefined;
  const [kind, streams] = found;
  const path = `/models/{model}:${verb}`;
  return { dialect: "google", kind, path, usage: "google", model: name, streams };
};

const tryDecode = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
};
