// Why answers end, in each server's wording.
import { expect, test } from "bun:test";
import { toFinish } from "#src/llm/finish-reasons.ts";
import { ModelError } from "#src/llm/model.ts";

type UnifiedReason = Parameters<typeof toFinish>[0]["unified"];

/** Maps a reason. By default it is one that the packages do not know. */
const finishReason = (raw: string | undefined, unified: UnifiedReason = "other"): unknown => {
  try {
    return toFinish({ raw, unified }).reason;
  } catch (error) {
    return error instanceof ModelError ? [error.reason, error.retryable] : error;
  }
};

// biome-ignore format: a table of cases
const REASONS: [string, unknown][] = [
  // OpenAI, Anthropic, Google, TGI, Cohere.
  ["stop", "stop"], ["end_turn", "stop"], ["stop_sequence", "stop"], ["STOP", "stop"], ["eos_token", "stop"], ["COMPLETE", "stop"],
  ["tool_calls", "tool_calls"], ["tool_use", "tool_calls"], ["function_call", "tool_calls"],
  // Mistral, servers of open models, OpenAI's responses.
  ["length", "length"], ["max_tokens", "length"], ["MAX_TOKENS", "length"], ["model_length", "length"], ["max_output_tokens", "length"],
  // z.ai, Google, Anthropic, Azure.
  ["sensitive", "content_filter"], ["RECITATION", "content_filter"], ["SAFETY", "content_filter"], ["PROHIBITED_CONTENT", "content_filter"],
  ["SPII", "content_filter"], ["BLOCKLIST", "content_filter"], ["refusal", "content_filter"], ["content_filter", "content_filter"],
  ["pause_turn", "paused"],
  // z.ai, Moonshot, DeepSeek, vLLM, OpenRouter, Google, Ollama.
  ...["network_error", "engine_overloaded", "timeout", "cancelled", "insufficient_system_resource", "abort", "error", "repetition",
    "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "load", "unload"].map((word): [string, unknown] => [word, ["broke_off", true]]),
  ["model_context_window_exceeded", ["too_long", false]],
  ["some_new_word", "incomplete"],
];
test.each(REASONS)("[MO-62] %s is %j", (raw, end) => {
  expect(finishReason(raw)).toEqual(end);
});

test("[MO-62] without a raw finish reason the package's applies; an answer without either counts as interrupted", () => {
  expect(finishReason(undefined, "stop")).toBe("stop");
  expect(finishReason(undefined, "tool-calls")).toBe("tool_calls");
  expect(finishReason("STOP", "tool-calls")).toBe("tool_calls");
  expect(finishReason(undefined)).toEqual(["broke_off", true]);
  expect(finishReason("unheard_of", "error")).toBe("incomplete");
});
