// Validates providers and models entered by an administrator, field by field. Pure.

import { type AppError, invalid, invalidField, type Validation } from "#base/errors.ts";
import { trimEnd } from "#base/text/trim.ts";
import type { CallConfig } from "#schema/chats/model-config.ts";
import { PROVIDER_KINDS, type ProviderKind } from "#schema/chats/model-provider.ts";

const MAX_KEY_BYTES = 10_240;

export const parseKind = (text: string): ProviderKind => {
  const kind = PROVIDER_KINDS.find((one) => one === text.trim().toLowerCase());
  if (!kind) throw invalidField("provider", `must be one of ${PROVIDER_KINDS.join(", ")}`);
  return kind;
};

/** Accepts at most 10 KB, without surrounding whitespace (facts/chats 5.8). The key itself is never in the error. */
export const parseKey = (text: string): string => {
  if (Buffer.byteLength(text) > MAX_KEY_BYTES)
    throw invalidField("api_key", `must have at most ${MAX_KEY_BYTES} bytes`);
  if (text.trim() !== text) throw invalidField("api_key", "must not begin or end with blanks");
  if (/[^\x21-\x7e]/.test(text)) throw invalidField("api_key", "must be printable ASCII characters");
  return text;
};

/** Accepts http or https without secrets, and removes a trailing slash. An empty text stays empty. */
export const parseBaseUrl = (text: string, isRequired: boolean): string => {
  const invalidUrl = (detail: string): AppError => invalidField("base_url", detail);
  const trimmed = text.trim();
  if (trimmed === "" && isRequired) throw invalidUrl("is required for this provider");
  if (trimmed === "") return "";
  const url = URL.canParse(trimmed) ? new URL(trimmed) : undefined;
  if (!url || (url.protocol !== "http:" && url.protocol !== "https:")) throw invalidUrl("must be an http or https URL");
  if (url.username !== "" || url.password !== "") throw invalidUrl("must not contain credentials: give an api_key");
  if (url.search !== "" || url.hash !== "") throw invalidUrl("must not have a query or a fragment");
  return trimEnd(url.href, "/");
};

export const parseName = (field: string, text: string): string => {
  const name = text.trim();
  if (name === "") throw invalidField(field, "must not be empty");
  return name;
};

const checkRange = (field: string, value: number | null | undefined, low: number, high: number): Validation[] =>
  value === null || value === undefined || (value >= low && value <= high)
    ? []
    : [{ field, detail: `must be ${low} to ${high}` }];

const MAX_TOKENS = 1_000_000_000;

/** Rejects with 400 and one entry per number out of range. */
export const checkNumbers = (given: {
  context_limit?: number;
  compression_threshold?: number | null;
  model_config?: CallConfig;
}): void => {
  const { context_limit, compression_threshold, model_config: call = {} } = given;
  const problems = [
    ...checkRange("context_limit", context_limit, 1, MAX_TOKENS),
    ...checkRange("compression_threshold", compression_threshold, 0, 100),
    ...checkRange("model_config.max_output_tokens", call.max_output_tokens, 1, MAX_TOKENS),
    ...checkRange("model_config.temperature", call.temperature, 0, 2),
    ...checkRange("model_config.top_p", call.top_p, 0, 1),
    ...checkRange("model_config.top_k", call.top_k, 1, MAX_TOKENS),
    ...checkRange("model_config.presence_penalty", call.presence_penalty, -2, 2),
    ...checkRange("model_config.frequency_penalty", call.frequency_penalty, -2, 2),
  ];
  if (problems.length > 0) throw invalid("Validation failed.", problems);
};
