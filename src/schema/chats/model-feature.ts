// Request features that some model servers reject. Each can be disabled per model.
export const MODEL_FEATURES = [
  "tools",
  "parallel_tool_calls",
  "tool_streaming",
  "images",
  "documents",
  "system_role",
  "stream_options",
  "reasoning_effort",
  "max_output_tokens",
  "temperature",
  "top_p",
  "top_k",
  "presence_penalty",
  "frequency_penalty",
  "long_tool_call_ids",
  "user_after_tool",
] as const;
export type ModelFeature = (typeof MODEL_FEATURES)[number];
