// Maps the finish reasons of all servers. A failure is reported as one even after text, and an unknown reason marks the answer as
// incomplete, so that a partial answer is never shown as complete (rules MO-39, MO-45, MO-62). Pure. Sources: the API references of
// Anthropic, OpenAI, Google, Mistral, DeepSeek, Moonshot, z.ai, Groq, xAI and OpenRouter, and the source code of vLLM, llama.cpp, Ollama,
// LM Studio and TGI.
import type { LanguageModelV4FinishReason } from "@ai-sdk/provider";
import { ModelError, type ModelEvent } from "./model.ts";

type Reason = Extract<ModelEvent, { type: "finish" }>["reason"] | "failed" | "too_long";

const REASONS: Readonly<Record<Reason, readonly string[]>> = {
  stop: [
    "stop",
    "end_turn",
    "stop_sequence",
    "eos",
    "eos_token",
    "complete",
    "completed",
    "done",
    "normal",
    "compaction",
  ],
  tool_calls: ["tool_calls", "tool_use", "function_call", "tool_call"],
  length: ["length", "max_tokens", "max_output_tokens", "model_length", "max_length", "token_limit", "limit"],
  content_filter: [
    ...["content_filter", "content_filtered", "refusal", "safety", "sensitive", "recitation", "blocklist", "language"],
    ...[
      "prohibited_content",
      "spii",
      "image_safety",
      "image_recitation",
      "image_prohibited_content",
      "guardrail_intervened",
    ],
  ],
  paused: ["pause_turn"],
  too_long: ["model_context_window_exceeded", "context_window_exceeded", "context_length_exceeded"],
  failed: [
    ...["error", "network_error", "engine_overloaded", "overloaded", "timeout", "timed_out", "cancelled", "canceled"],
    ...[
      "abort",
      "aborted",
      "interrupted",
      "insufficient_system_resource",
      "repetition",
      "internal_error",
      "server_error",
    ],
    ...["malformed_function_call", "unexpected_tool_call", "too_many_tool_calls", "missing_thought_signature"],
    ...["malformed_response", "load", "unload", "failed", "incomplete", "no_image", "image_other"],
  ],
  incomplete: [],
};

const REASON_BY_NAME: ReadonlyMap<string, Reason> = new Map(
  Object.entries(REASONS).flatMap(([reason, words]) => words.map((word): [string, Reason] => [word, reason as Reason])),
);

/** Returns the finish event. Throws `ModelError` if the server failed or gave no reason. */
export const toFinish = ({ unified, raw }: LanguageModelV4FinishReason): Extract<ModelEvent, { type: "finish" }> => {
  const reason = toReason(unified, raw?.toLowerCase());
  if (reason === "failed") {
    throw new ModelError("timeout", `The answer ended with "${raw ?? unified}".`, { reason: "broke_off" });
  }
  if (reason === "too_long") throw new ModelError("config", `The answer ended with "${raw}".`, { reason: "too_long" });
  return { type: "finish", reason };
};

const toReason = (unified: LanguageModelV4FinishReason["unified"], raw: string | undefined): Reason => {
  const mapped = raw === undefined ? undefined : REASON_BY_NAME.get(raw);
  if (mapped === "stop" && unified === "tool-calls") return "tool_calls";
  if (mapped !== undefined) return mapped;
  const isUnknown = raw !== undefined && (unified === "other" || unified === "error");
  if (isUnknown) return "incomplete";
  switch (unified) {
    case "stop":
    case "length":
      return unified;
    case "tool-calls":
      return "tool_calls";
    case "content-filter":
      return "content_filter";
    default:
      return "failed";
  }
};
