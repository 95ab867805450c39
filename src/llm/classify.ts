// Classifies why a model call failed, from the provider's response: the table of facts/chats 5.7, first match wins. Pure; call-failure.ts
// extracts the signals from the error.
import type { ChatErrorKind } from "#schema/chats/chat-error.ts";

/** The known facts about a failure: the HTTP status, if there was a response, and all text in lower case. */
export type FailureSignal = {
  readonly status: number | undefined;
  readonly text: string;
  /** The stream ended without an end marker. */
  readonly ended_early?: boolean;
};

/** Details beyond the kind, where they help users. */
export type FailureReason =
  | ("too_long" | "unreachable" | "unknown_host" | "broke_off" | "empty" | "only_reasoning")
  /** The answer does not end within the size of a message. */
  | "endless"
  /** The chat's own model is not available. */
  | ("gone" | "model_disabled")
  | "spend_limit"
  /** The chat's owner may not use models now. */
  | "owner_refused"
  /** A budget is used up, or what remains of it is reserved. */
  | "budget"
  | "budget_held"
  /** The address belongs to something other than a provider. */
  | "web_page";

export type Verdict = { readonly kind: ChatErrorKind; readonly retryable: boolean };

/** `statuses`: a list, or a range from first to last. */
type Rule = Verdict & {
  readonly name: string;
  readonly statuses?: readonly number[] | { readonly from: number; readonly to: number };
  readonly words?: RegExp;
};

/** Messages of providers when a prompt exceeds the model's context or an account's limit per request. */
const TOO_LONG_PATTERN = new RegExp(
  [
    "context[-_ ](length|window|size|limit|shift is disabled)",
    "exceed_context|length of the (input|messages)|reduce your message size",
    "(prompt|input|request|conversation|messages?)( is| are)? too (long|large)",
    "request[-_ ](entity[-_ ])?too[-_ ]large",
    "(prompt|inputs?) (is )?exceeds? (the )?max|total message size.{0,40}exceeds",
    "max(imum)? (context|number of tokens|(allowed )?(prompt|input) (length|tokens))",
    "exceeded model token limit|range of input length",
    "token count.{0,40}exceeds|input (length|tokens).{0,80}exceed|too many (input )?tokens(?!.{0,24}wait)",
    "inputs?`? (tokens )?(\\+ `?max_new_tokens`? )?must (be|have) (<|less)",
    "tokens to keep from the initial prompt",
  ].join("|"),
  "i",
);

/** Messages of providers when a filter has refused the prompt or ended the response. */
const FILTER_PATTERN =
  /\bcontent[-_ ]?filter(ed|ing)?\b|content[-_ ](management[-_ ])?policy|responsible ?ai ?policy|data_inspection_failed|content exists risk|prohibited_content|flagged as potentially violating/;

/** In order of precedence. */
export const RULES: readonly Rule[] = [
  {
    name: "cancelled",
    words: /interrupted by (shutdown|cancel)|context cancell?ed|request (was |has been )?cancell?ed/,
    ...permanently("generic"),
  },
  { name: "continuity", words: /continuity (diagnostic|check|error)/, ...permanently("generic") },
  { name: "ended early", words: /stream (ended|closed) (early|before|without)/, ...retryably("timeout") },
  {
    name: "unknown response id",
    words: /previous[_ ]response.{0,120}not[_ ]found|item with id.{0,120}not found/,
    ...retryably("generic"),
  },
  // A filter that sends an error instead of a finish reason.
  { name: "filtered", words: FILTER_PATTERN, ...permanently("content_filter") },
  // Before rate limits: a request larger than the tokens per minute never succeeds.
  { name: "too long", statuses: [413], words: TOO_LONG_PATTERN, ...permanently("config") },
  { name: "overloaded", statuses: [529], words: /overloaded/, ...retryably("overloaded") },
  {
    name: "quota",
    statuses: [402],
    words: /quota|billing|payment|credit balance|budget.{0,40}exceeded|exceeded.{0,40}budget/,
    ...permanently("usage_limit"),
  },
  {
    name: "key",
    statuses: [401],
    words: /unauthori[sz]ed|invalid.{0,12}api[-_ ]?key|api[-_ ]?key.{0,24}(not valid|invalid|expired)|authentication/,
    ...permanently("auth"),
  },
  { name: "forbidden", statuses: [403], words: /\bforbidden\b|permission[_ ](denied|error)/, ...permanently("auth") },
  { name: "rate", statuses: [429], words: /rate[-_ ]?limit|too many requests|throttl/, ...retryably("rate_limit") },
  { name: "disabled", words: /provider[-_ ](is[-_ ])?disabled/, ...permanently("provider_disabled") },
  {
    name: "unreachable",
    statuses: [408, 502, 503, 504],
    words:
      /deadline|timed? ?out|\beof\b|econnreset|econnrefused|epipe|e(host|net)unreach|enotfound|eai_again|getaddrinfo|connection (was )?(reset|refused|closed)|connection ?(closed|refused)|socket (connection )?(was )?closed|broken pipe|goaway|unable to connect/,
    ...retryably("timeout"),
  },
  {
    name: "model",
    words:
      /(invalid|unsupported|unknown)[-_ ]model|model.{0,120}(not[-_ ]found|not found|does not exist|not supported|unsupported)/,
    ...permanently("config"),
  },
  { name: "server", statuses: [500], words: /(internal|server)[-_ ](server[-_ ])?error/, ...retryably("generic") },
  { name: "conflict", statuses: [409, 425, 499], ...retryably("timeout") },
  { name: "unavailable", statuses: { from: 501, to: 599 }, ...retryably("timeout") },
];

function retryably(kind: ChatErrorKind): Verdict {
  return { kind, retryable: true };
}
function permanently(kind: ChatErrorKind): Verdict {
  return { kind, retryable: false };
}

/** Returns the kind of a failure, and whether a retry may succeed. */
export const classify = ({ status, text, ended_early = false }: FailureSignal): Verdict => {
  // The error page of a proxy says nothing about the request, whatever its text.
  const isPage = status !== undefined && status >= 500 && /^\s*<(!doctype|html)/i.test(text);
  const words = isPage ? "" : (ended_early ? `stream ended early: ${text}` : text).toLowerCase();
  const rule = RULES.find(
    ({ statuses, words: pattern }) => hasStatus(statuses, status) || (pattern?.test(words) ?? false),
  );
  return rule ? { kind: rule.kind, retryable: rule.retryable } : permanently("generic");
};

const hasStatus = (statuses: Rule["statuses"], status: number | undefined): boolean => {
  if (statuses === undefined || status === undefined) return false;
  return "from" in statuses ? status >= statuses.from && status <= statuses.to : statuses.includes(status);
};

/** Returns a further detail of the failure; undefined if none exists. */
export const findReason = ({ status, text, ended_early = false }: FailureSignal): FailureReason | undefined => {
  const { kind } = classify({ status, text, ended_early });
  if (kind === "config") return status === 413 || TOO_LONG_PATTERN.test(text) ? "too_long" : undefined;
  if (kind !== "timeout" || status !== undefined) return undefined;
  if (/enotfound|eai_again|getaddrinfo/i.test(text)) return "unknown_host";
  if (/econnrefused|connection ?refused|unable to connect|e(host|net)unreach/i.test(text)) return "unreachable";
  return ended_early || BROKEN_STREAM_PATTERN.test(text) ? "broke_off" : undefined;
};

const BROKEN_STREAM_PATTERN =
  /stream (ended|closed)|\beof\b|econnreset|epipe|connection (was )?(reset|closed)|connection ?closed|socket (connection )?(was )?closed|broken pipe|goaway/i;

/** A longer wait is shortened to this. */
const MAX_RETRY_AFTER_MS = 366 * 86_400_000;

/** Returns milliseconds from the response's headers: `retry-after-ms`, or `retry-after` in seconds or as a date; at most a year. */
export const retryAfter = (headers: Readonly<Record<string, string>> | undefined, now: number): number => {
  const exactMs = Number(headers?.["retry-after-ms"]);
  if (exactMs > 0) return Math.min(exactMs, MAX_RETRY_AFTER_MS);
  const text = headers?.["retry-after"]?.trim() ?? "";
  const seconds = Number(text);
  const waitMs = text === "" ? 0 : Number.isNaN(seconds) ? Date.parse(text) - now : seconds * 1000;
  return waitMs > 0 ? Math.min(waitMs, MAX_RETRY_AFTER_MS) : 0;
};
