// Converts any error during a model call to a `ModelError`: classified, with the provider's message as its detail and without secrets.
// Pure.
import { parseJson } from "#base/json/read.ts";
import { classify, findReason, retryAfter } from "./classify.ts";
import type { ConfiguredProvider } from "./configured-model.ts";
import { ModelError } from "./model.ts";
import { maskSecrets } from "./secrets.ts";

/** Returns the texts without the ones that repeat an earlier one or wrap it in JSON, each code after its message. */
export const removeRepetitions = (texts: readonly string[]): string => {
  const unique: string[] = [];
  for (const text of texts) {
    for (const one of splitError(text)) {
      if (!unique.some((earlier) => earlier.toLowerCase().includes(one.toLowerCase()))) unique.push(one);
    }
  }
  return unique.join(" ");
};

/** Returns the message and code of an error in JSON, or any other text unchanged. */
const splitError = (text: string): readonly string[] => {
  const error = findError(text);
  const message = error?.message;
  if (typeof message !== "string" || message === "") return [text];
  const code = [error?.code, error?.type].find((one) => typeof one === "string" && one !== "");
  return [...splitError(message), ...(code === undefined ? [] : [`(${code})`])];
};

type ErrorFields = { readonly message?: unknown; readonly code?: unknown; readonly type?: unknown };

/** Parses `{"error": {"message": ...}}` or `{"message": ...}`, also inside an array of one. */
const findError = (text: string): ErrorFields | undefined => {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    const value = parseJson(text);
    const outer = (Array.isArray(value) ? value[0] : value) as { error?: unknown } | null;
    const inner = typeof outer?.error === "object" && outer.error !== null ? outer.error : outer;
    return typeof inner === "object" && inner !== null ? (inner as ErrorFields) : undefined;
  } catch {
    return undefined;
  }
};

type CallContext = { readonly provider: ConfiguredProvider; readonly key: string; readonly now: () => number };

/** Returns the part of a failure that callers may see. */
export const toModelError = (error: unknown, { provider, key, now }: CallContext): ModelError => {
  if (error instanceof ModelError) return error;
  // The packages wrap errors from reading a response.
  if (error instanceof Error && error.cause instanceof ModelError) return error.cause;
  const { status, headers, words, detail } = findSignals(error);
  const ended_early = /without a finish reason/.test(words);
  const signal = { status, text: words, ended_early };
  const { kind, retryable } = classify(signal);
  return new ModelError(kind, maskSecrets(detail, key), {
    retryable,
    provider: provider.provider,
    display_name: provider.display_name,
    status_code: status,
    retry_after_ms: retryAfter(headers, now()),
    reason: findReason(signal),
  });
};

type ThrownFields = {
  message?: unknown;
  code?: unknown;
  type?: unknown;
  statusCode?: unknown;
  responseHeaders?: Record<string, string>;
  responseBody?: unknown;
  cause?: unknown;
};

/**
 * Handles the packages' own errors, plain objects from inside a stream, and network errors. `words` is all text, for classification;
 * `detail` contains each message once, for users.
 */
export const findSignals = (error: unknown) => {
  const thrown = (typeof error === "object" && error !== null ? error : { message: String(error) }) as ThrownFields;
  const isPlain = !(error instanceof Error) && typeof error === "object";
  const cause = thrown.cause as ThrownFields | undefined;
  const errorTexts = [
    thrown.message,
    thrown.responseBody,
    isPlain ? JSON.stringify(error) : "",
    thrown.code,
    cause?.code,
  ];
  const texts = [...new Set(errorTexts)].filter((one): one is string => typeof one === "string" && one !== "");
  const code = [thrown.statusCode, thrown.code].find((one) => typeof one === "number" && one >= 300 && one < 600);
  return {
    status: code as number | undefined,
    headers: thrown.responseHeaders,
    words: texts.join(" "),
    detail: removeRepetitions(texts),
  };
};
