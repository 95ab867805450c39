// Whatever is thrown while a provider answers, as a `ModelError`: classified, with the provider's words as its detail and without any
// secret. Pure.
import { classify, findReason, retryAfter } from "./classify.ts";
import type { ConfiguredProvider } from "./configured-model.ts";
import { ModelError } from "./model.ts";
import { saidOnce } from "./said.ts";
import { withoutSecrets } from "./secrets.ts";

type Of = { readonly provider: ConfiguredProvider; readonly key: string; readonly now: () => number };

/** Returns what callers may know of a failure. */
export const toModelError = (error: unknown, { provider, key, now }: Of): ModelError => {
  if (error instanceof ModelError) return error;
  const { status, headers, words, detail } = findSignals(error);
  const ended_early = /without a finish reason/.test(words);
  const signal = { status, text: words, ended_early };
  const { kind, retryable } = classify(signal);
  return new ModelError(kind, withoutSecrets(detail, key), {
    retryable,
    provider: provider.provider,
    display_name: provider.display_name,
    status_code: status,
    retry_after_ms: retryAfter(headers, now()),
    reason: findReason(signal),
  });
};

type Thrown = {
  message?: unknown;
  code?: unknown;
  type?: unknown;
  statusCode?: unknown;
  responseHeaders?: Record<string, string>;
  responseBody?: unknown;
  cause?: unknown;
};

/**
 * The packages throw errors of their own, plain objects from inside a stream, and what the network throws. `words` is all that was said,
 * to tell the kind by; `detail` says it once, for people.
 */
export const findSignals = (error: unknown) => {
  const thrown = (typeof error === "object" && error !== null ? error : { message: String(error) }) as Thrown;
  const isPlain = !(error instanceof Error) && typeof error === "object";
  const cause = thrown.cause as Thrown | undefined;
  const said = [thrown.message, thrown.responseBody, isPlain ? JSON.stringify(error) : "", thrown.code, cause?.code];
  const texts = [...new Set(said)].filter((one): one is string => typeof one === "string" && one !== "");
  const code = [thrown.statusCode, thrown.code].find((one) => typeof one === "number" && one >= 300 && one < 600);
  return {
    status: code as number | undefined,
    headers: thrown.responseHeaders,
    words: texts.join(" "),
    detail: saidOnce(texts),
  };
};
