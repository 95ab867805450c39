// The classification of failures, for error messages in the providers' wording.
import { describe, expect, test } from "bun:test";
import type { ChatErrorKind } from "#schema/chats/chat-error.ts";
import { classify, findReason, retryAfter } from "#src/llm/classify.ts";
import { maskSecrets } from "#src/llm/secrets.ts";

type Row = [status: number | undefined, text: string, kind: ChatErrorKind, retryable: boolean];

const TABLE: Row[] = [
  [undefined, "the request was interrupted by shutdown", "generic", false],
  [500, "context canceled", "generic", false],
  [400, "response continuity diagnostic: reasoning item missing", "generic", false],
  [undefined, "stream ended early", "timeout", true],
  [400, "Previous response with id 'resp_1' not found.", "generic", true],
  [400, '{"code":"previous_response_not_found"}', "generic", true],
  [undefined, '{"message":"The answer was stopped.","code":"content_filter"}', "content_filter", false],
  [
    400,
    "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
    "content_filter",
    false,
  ],
  [400, "Output blocked by content filtering policy", "content_filter", false],
  [400, "Content Exists Risk", "content_filter", false],
  [500, '{"message":"broken","content_filter_results":{}}', "generic", true],
  [529, "", "overloaded", true],
  [503, "The model is overloaded. Please try again later.", "overloaded", true],
  [undefined, '{"type":"overloaded_error","message":"Overloaded"}', "overloaded", true],
  [429, '{"error":{"code":"insufficient_quota"}}', "usage_limit", false],
  [402, "Payment required", "usage_limit", false],
  [402, "Insufficient Balance", "usage_limit", false],
  [400, "Your credit balance is too low to access the API", "usage_limit", false],
  [400, "Budget has been exceeded! Current cost: 12", "usage_limit", false],
  [401, "", "auth", false],
  [400, "API key not valid. Please pass a valid API key.", "auth", false],
  [undefined, "invalid x-api-key: invalid api key", "auth", false],
  [403, "", "auth", false],
  [undefined, "403 Forbidden", "auth", false],
  [429, "", "rate_limit", true],
  [undefined, "Rate limit reached for requests", "rate_limit", true],
  [400, '{"code":"provider_disabled"}', "provider_disabled", false],
  [408, "", "timeout", true],
  [502, "<html>Bad Gateway</html>", "timeout", true],
  [503, "", "timeout", true],
  [504, "", "timeout", true],
  [undefined, "unexpected EOF", "timeout", true],
  [undefined, "ECONNRESET: The socket connection was closed unexpectedly", "timeout", true],
  [undefined, "ConnectionRefused: Unable to connect", "timeout", true],
  [undefined, "http2: server sent GOAWAY", "timeout", true],
  [404, "The model `gpt-9` does not exist or you do not have access to it.", "config", false],
  [404, 'model "llama" not found, try pulling it first', "config", false],
  [400, "This model's maximum context length is 8192 tokens", "config", false],
  [400, "prompt is too long: 210000 tokens > 200000 maximum", "config", false],
  [400, '{"code":"context_length_exceeded"}', "config", false],
  [400, "the request exceeds the available context size, try increasing it", "config", false],
  [400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", "config", false],
  [413, "Request Entity Too Large", "config", false],
  [undefined, "getaddrinfo ENOTFOUND models.example", "timeout", true],
  [undefined, "connect EHOSTUNREACH 192.0.2.1:80", "timeout", true],
  [500, "", "generic", true],
  ...[501, 505, 520, 521, 522, 523, 524, 525, 526, 530, 598, 599].map((status): Row => [status, "", "timeout", true]),
  ...[409, 425, 499].map((status): Row => [status, "", "timeout", true]),
  [520, "<!DOCTYPE html><title>520: the server returned an unknown error; see billing</title>", "timeout", true],
  [404, "<html>not here</html>", "generic", false],
  [429, "ThrottlingException: Too many tokens, please wait before trying again.", "rate_limit", true],
  [undefined, '{"type":"server_error"}', "generic", true],
  [400, "messages.0: something else", "generic", false],
  [404, "", "generic", false],
  [302, "", "generic", false],
  [undefined, "", "generic", false],
];

describe("why a call failed", () => {
  test.each(TABLE)("[MO-10] status %p with %p is %s, retryable: %p", (status, text, kind, retryable) => {
    expect(classify({ status, text })).toEqual({ kind, retryable });
  });

  test("[MO-10] the first matching row applies: an exhausted quota is not a rate limit, nor an early end a quota error", () => {
    expect(classify({ status: 429, text: "rate limit: you exceeded your current quota" }).kind).toBe("usage_limit");
    expect(classify({ status: 401, text: "too many requests" }).kind).toBe("auth");
    expect(classify({ status: undefined, text: "quota", ended_early: true })).toEqual({
      kind: "timeout",
      retryable: true,
    });
  });
});

describe("the reason of an error for users", () => {
  test.each([
    [400, "This model's maximum context length is 8192 tokens", "too_long"],
    [400, '{"type":"exceed_context_size_error"}', "too_long"],
    // Moonshot, DashScope, z.ai, xAI, TGI, llama.cpp, Groq and OpenAI, Mistral, LM Studio, vLLM, Copilot, MiniMax, Bedrock.
    [400, "Invalid request: Your request exceeded model token limit: 262144 (requested: 270000)", "too_long"],
    [400, "total message size 10176584 exceeds limit 2097152", "too_long"],
    [400, "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]", "too_long"],
    [400, '{"error":{"code":"1261","message":"Prompt exceeds max length"}}', "too_long"],
    [400, "This model's maximum prompt length is 131072 but the request contains 537812 tokens.", "too_long"],
    [422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000", "too_long"],
    [422, "Input validation error: `inputs` must have less than 1024 tokens. Given: 2000", "too_long"],
    [500, "context shift is disabled", "too_long"],
    [500, "input is too large to process. increase the physical batch size", "too_long"],
    [
      413,
      "Request too large for model `m` on tokens per minute (TPM): Limit 6000, Requested 7000, please reduce your message size and try again. rate_limit_exceeded",
      "too_long",
    ],
    [429, "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000.", "too_long"],
    [429, "Rate limit reached for gpt-4o on tokens per min (TPM). Please try again in 6ms.", undefined],
    [400, "Prompt contains 40000 tokens, too large for model with 32768 maximum context length", "too_long"],
    [400, "The number of tokens to keep from the initial prompt is greater than the context length", "too_long"],
    [
      400,
      "You passed 202753 input tokens and requested 0 output tokens. the model's context length is 202752",
      "too_long",
    ],
    [400, "prompt token count of 130000 exceeds the limit of 128000", "too_long"],
    [400, "invalid params, context window exceeds limit (2013)", "too_long"],
    [400, "input length and `max_tokens` exceed context limit: 187254 + 20000 > 204798", "too_long"],
    [400, "Input length 131100 exceeds the maximum allowed input length of 131072 tokens", "too_long"],
    [400, "Please reduce the length of the messages or completion.", "too_long"],
    [400, "max_tokens is too large: 50000. This model supports at most 16384 completion tokens", undefined],
    [404, "The model `gpt-9` does not exist", undefined],
    [undefined, "ConnectionRefused: Unable to connect", "unreachable"],
    [undefined, "getaddrinfo ENOTFOUND models.example", "unknown_host"],
    [undefined, "The socket connection was closed unexpectedly", "broke_off"],
    [504, "upstream connection closed", undefined],
    [undefined, "deadline exceeded", undefined],
  ] as const)("[MO-13] status %p with %p is %p", (status, text, reason) => {
    expect(findReason({ status, text })).toBe(reason);
  });
});

describe("when to retry", () => {
  const now = Date.parse("2026-05-01T12:00:00Z");

  test.each([
    [{ "retry-after": "7" }, 7_000],
    [{ "retry-after-ms": "1500", "retry-after": "9" }, 1_500],
    [{ "retry-after": "Fri, 01 May 2026 12:00:30 GMT" }, 30_000],
    [{ "retry-after": "Fri, 01 May 2026 11:00:00 GMT" }, 0],
    [{ "retry-after": "soon" }, 0],
    [{ "retry-after": "-5" }, 0],
    [{ "retry-after": "7200" }, 7_200_000],
    [{ "retry-after": "999999999" }, 366 * 86_400_000],
    [{}, 0],
    [undefined, 0],
  ])("[MO-11] %j means %d ms", (headers, ms) => {
    expect(retryAfter(headers as Record<string, string> | undefined, now)).toBe(ms);
  });
});

describe("secrets in a provider's messages", () => {
  test.each([
    ["Incorrect API key provided: my-own-secret. Find yours", "Incorrect API key provided: [hidden]. Find yours"],
    ["Incorrect API key provided: sk-proj-abcdef123456*****7890.", "Incorrect API key provided: [hidden]"],
    ["Authorization: Bearer abcdefghijkl was refused", "Authorization: Bearer [hidden] was refused"],
    ["key AIzaSyA1234567890abcdefg is wrong", "key [hidden] is wrong"],
    ['{"message":"\\u006dy\\u002Down\\u002dsecret, \\u0041"}', '{"message":"[hidden], \\u0041"}'],
    ["nothing secret here", "nothing secret here"],
  ])("[MO-12] %p is shown as %p", (message, shown) => {
    expect(maskSecrets(message, "my-own-secret")).toBe(shown);
  });
});
