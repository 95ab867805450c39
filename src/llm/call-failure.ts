// Converts any error during a model call to a `ModelError`: classified, with the provider's message as its detail and without secrets.
// Pure.
import { classify, findReason, retryAfter } from "./classify.ts";
import type { ConfiguredProvider } from "./configured-model.ts";
import { ModelError } from "./model.ts";
import { removeRepetitions } from "./provider-message.ts";
import { maskSecrets } from "./secrets.ts";

type CallContext = { readonly provider: ConfiguredProvider; readonly key: string; readonly now: () => number };

/** Returns the part of a failure that callers may see. */
export const toModelError = (error: unknown, { provider, key, now }: CallContext): ModelError => {
  if (error instanceof ModelError) return error;
  // The packages wrap what reading a response throws.
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
