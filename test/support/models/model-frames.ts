// The streams of model providers, frame by frame: OpenAI's chat completions and responses, Anthropic's messages, Google's generateContent.
// Pure; used by model-server.ts and test/bench.
import { DIALECTS, type Dialect, dialectFrame, isDialect } from "./model-dialects.ts";

export type Protocol = "openai" | "responses" | "anthropic" | "google" | Dialect;

/** Returns the protocol at this path of the model server. */
export const findProtocol = (path: string): Protocol => {
  const dialect = DIALECTS.find((name) => path.startsWith(`/${name}/`));
  if (dialect) return dialect;
  if (path.includes("/messages")) return "anthropic";
  if (path.includes("/responses")) return "responses";
  return path.includes("GenerateContent") ? "google" : "openai";
};

/** One item of a model's output. */
export type OutputItem =
  | { text: string }
  | { reasoning: string }
  | { call: { id: string; name: string; args: string } }
  /** A web search by the provider that finds one page. */
  | { search: { id: string; query: string; url: string; title: string } }
  | { finish: "stop" | "tool_calls" | "length" | "content_filter"; usage?: OutputUsage };
/** `input` counts the whole prompt, `cached` its cached part, `thought` the thinking part of the output. */
export type OutputUsage = { input: number; output: number; cached?: number; thought?: number };

const ENDS = {
  responses: { stop: null, tool_calls: null, length: "max_output_tokens", content_filter: "content_filter" },
  openai: { stop: "stop", tool_calls: "tool_calls", length: "length", content_filter: "content_filter" },
  anthropic: { stop: "end_turn", tool_calls: "tool_use", length: "max_tokens", content_filter: "refusal" },
  google: { stop: "STOP", tool_calls: "STOP", length: "MAX_TOKENS", content_filter: "SAFETY" },
} as const;

const sse = (data: unknown, event?: string): string =>
  `${event ? `event: ${event}\n` : ""}data: ${JSON.stringify(data)}\n\n`;

/** Returns what the provider sends before the first text. */
export const toOpening = (protocol: Protocol): string => {
  if (protocol === "responses") {
    return sse({ type: "response.created", response: { id: "resp_1", created_at: 1, model: "m" } });
  }
  return protocol === "anthropic"
    ? sse(
        {
          type: "message_start",
          message: {
            id: "msg_1",
            type: "message",
            role: "assistant",
            content: [],
            model: "m",
            stop_reason: null,
            usage: { input_tokens: 7, output_tokens: 0 },
          },
        },
        "message_start",
      )
    : "";
};

/** Returns the frame of one item as this provider streams it. `index` counts the blocks of an answer. */
export const frame = (protocol: Protocol, outputItem: OutputItem, index = 0): string => {
  if (isDialect(protocol)) return dialectFrame(protocol, outputItem, index);
  if (protocol === "openai") return openAiFrame(outputItem, index);
  if (protocol === "responses") return responsesFrame(outputItem, index);
  return protocol === "anthropic" ? anthropicFrame(outputItem, index) : googleFrame(outputItem);
};

const openAiChunk = (delta: unknown, finish_reason: string | null = null, usage?: unknown): string =>
  sse({
    id: "c1",
    object: "chat.completion.chunk",
    created: 1,
    model: "m",
    choices: [{ index: 0, delta, finish_reason }],
    usage,
  });

const openAiFrame = (outputItem: OutputItem, index: number): string => {
  if ("text" in outputItem) return openAiChunk({ content: outputItem.text });
  if ("reasoning" in outputItem) return openAiChunk({ reasoning_content: outputItem.reasoning });
  if ("call" in outputItem) {
    const { id, name, args } = outputItem.call;
    return openAiChunk({ tool_calls: [{ index, id, type: "function", function: { name, arguments: args } }] });
  }
  if ("search" in outputItem) throw new Error("chat completions have no web search");
  const { input = 7, output = 5, cached, thought } = outputItem.usage ?? {};
  const usage = {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    ...(cached === undefined ? {} : { prompt_tokens_details: { cached_tokens: cached } }),
    ...(thought === undefined ? {} : { completion_tokens_details: { reasoning_tokens: thought } }),
  };
  return `${openAiChunk({}, ENDS.openai[outputItem.finish], usage)}data: [DONE]\n\n`;
};

/** Returns all events of one output item: `added`, its deltas in `between`, and `done`. */
const toItemEvents = (
  index: number,
  started: Record<string, unknown>,
  between: string,
  done: Record<string, unknown> = started,
) =>
  sse({ type: "response.output_item.added", output_index: index, item: started }) +
  between +
  sse({ type: "response.output_item.done", output_index: index, item: done });

const responsesFrame = (outputItem: OutputItem, index: number): string => {
  const location = { item_id: `item_${index}`, output_index: index };
  const id = location.item_id;
  if ("text" in outputItem) {
    return toItemEvents(
      index,
      { type: "message", id },
      sse({ type: "response.output_text.delta", ...location, delta: outputItem.text }),
    );
  }
  if ("reasoning" in outputItem) {
    const part = { ...location, summary_index: 0 };
    const deltas =
      sse({ type: "response.reasoning_summary_part.added", ...part }) +
      sse({ type: "response.reasoning_summary_text.delta", ...part, delta: outputItem.reasoning }) +
      sse({ type: "response.reasoning_summary_part.done", ...part });
    const started = { type: "reasoning", id, encrypted_content: null };
    return toItemEvents(index, started, deltas, { ...started, encrypted_content: "sealed-thoughts" });
  }
  if ("call" in outputItem) {
    const call = { type: "function_call", id, call_id: outputItem.call.id, name: outputItem.call.name };
    const deltas = sse({ type: "response.function_call_arguments.delta", ...location, delta: outputItem.call.args });
    return toItemEvents(index, { ...call, arguments: "" }, deltas, {
      ...call,
      arguments: outputItem.call.args,
      status: "completed",
    });
  }
  if ("search" in outputItem) {
    const { search } = outputItem;
    const started = { type: "web_search_call", id: search.id, status: "in_progress" };
    const action = { type: "search", query: search.query, sources: [{ type: "url", url: search.url }] };
    return toItemEvents(index, started, "", { ...started, status: "completed", action });
  }
  const { input: input_tokens = 7, output: output_tokens = 5, cached = 0, thought = 0 } = outputItem.usage ?? {};
  const reason = ENDS.responses[outputItem.finish];
  const usage = {
    input_tokens,
    output_tokens,
    input_tokens_details: { cached_tokens: cached },
    output_tokens_details: { reasoning_tokens: thought },
  };
  const response = { usage, incomplete_details: reason ? { reason } : null };
  return sse({ type: reason ? "response.incomplete" : "response.completed", response });
};

const block = (index: number, content_block: unknown, delta: unknown): string =>
  sse({ type: "content_block_start", index, content_block }, "content_block_start") +
  sse({ type: "content_block_delta", index, delta }, "content_block_delta") +
  sse({ type: "content_block_stop", index }, "content_block_stop");

const anthropicFrame = (outputItem: OutputItem, index: number): string => {
  if ("text" in outputItem)
    return block(index, { type: "text", text: "" }, { type: "text_delta", text: outputItem.text });
  if ("reasoning" in outputItem) {
    return (
      sse(
        { type: "content_block_start", index, content_block: { type: "thinking", thinking: "" } },
        "content_block_start",
      ) +
      sse(
        { type: "content_block_delta", index, delta: { type: "thinking_delta", thinking: outputItem.reasoning } },
        "content_block_delta",
      ) +
      sse(
        { type: "content_block_delta", index, delta: { type: "signature_delta", signature: "signed" } },
        "content_block_delta",
      ) +
      sse({ type: "content_block_stop", index }, "content_block_stop")
    );
  }
  if ("call" in outputItem) {
    const { id, name, args } = outputItem.call;
    return block(index, { type: "tool_use", id, name, input: {} }, { type: "input_json_delta", partial_json: args });
  }
  if ("search" in outputItem) {
    const { id, query, url, title } = outputItem.search;
    const foundPage = { type: "web_search_result", url, title, encrypted_content: "sealed-page", page_age: null };
    const content_block = { type: "web_search_tool_result", tool_use_id: id, content: [foundPage] };
    return (
      block(
        index,
        { type: "server_tool_use", id, name: "web_search", input: {} },
        { type: "input_json_delta", partial_json: JSON.stringify({ query }) },
      ) +
      sse({ type: "content_block_start", index: index + 100, content_block }, "content_block_start") +
      sse({ type: "content_block_stop", index: index + 100 }, "content_block_stop")
    );
  }
  const { input = 7, output = 5, cached = 0 } = outputItem.usage ?? {};
  const delta = { stop_reason: ENDS.anthropic[outputItem.finish], stop_sequence: null };
  // Cached tokens are reported separately.
  const usage = { input_tokens: input - cached, cache_read_input_tokens: cached, output_tokens: output };
  return sse({ type: "message_delta", delta, usage }, "message_delta") + sse({ type: "message_stop" }, "message_stop");
};

const googleFrame = (outputItem: OutputItem): string => {
  const chunk = (parts: unknown[], fields: Record<string, unknown> = {}) =>
    sse({ candidates: [{ index: 0, content: { role: "model", parts }, ...fields }] });
  if ("text" in outputItem) return chunk([{ text: outputItem.text }]);
  if ("reasoning" in outputItem)
    return chunk([{ text: outputItem.reasoning, thought: true, thoughtSignature: "signed" }]);
  if ("call" in outputItem) {
    return chunk([{ functionCall: { name: outputItem.call.name, args: JSON.parse(outputItem.call.args || "{}") } }]);
  }
  if ("search" in outputItem) {
    const { url: uri, title, query } = outputItem.search;
    return chunk([], { groundingMetadata: { webSearchQueries: [query], groundingChunks: [{ web: { uri, title } }] } });
  }
  const { input = 7, output = 5, cached = 0, thought = 0 } = outputItem.usage ?? {};
  const usageMetadata = {
    promptTokenCount: input,
    cachedContentTokenCount: cached,
    thoughtsTokenCount: thought,
    candidatesTokenCount: output - thought,
    totalTokenCount: input + output,
  };
  return sse({
    candidates: [{ index: 0, content: { role: "model", parts: [] }, finishReason: ENDS.google[outputItem.finish] }],
    usageMetadata,
  });
};
