// Servers of OpenAI's chat-completions protocol as publicly documented: how each streams thoughts, calls and token counts, and how it
// reports errors. The requests that each rejects are in receiver-rules.ts. vLLM (docs.vllm.ai), Ollama (docs.ollama.com), llama.cpp
// (tools/server), DeepSeek (api-docs.deepseek.com), Mistral (docs.mistral.ai), Moonshot (platform.moonshot.ai), Qwen (help.aliyun.com),
// z.ai (docs.z.ai), xAI (docs.x.ai), Groq (console.groq.com), LM Studio (lmstudio.ai/docs), TGI (huggingface.co/docs). Pure; used by
// model-frames.ts and model-server.ts.
import type { OutputItem } from "./model-frames.ts";

// biome-ignore format: a list
export const DIALECTS = ["vllm", "ollama", "llamacpp", "deepseek", "mistral", "kimi", "qwen", "zai", "xai", "groq", "lmstudio", "tgi"] as const;
export type Dialect = (typeof DIALECTS)[number];
export const isDialect = (protocol: string): protocol is Dialect => DIALECTS.some((dialect) => dialect === protocol);

const HEADS: Partial<Record<Dialect, Record<string, unknown>>> = {
  vllm: { id: "chatcmpl-vllm", object: "chat.completion.chunk", created: 1, model: "m" },
  ollama: {
    id: "chatcmpl-1",
    object: "chat.completion.chunk",
    created: 1,
    model: "m",
    system_fingerprint: "fp_ollama",
  },
  llamacpp: {
    created: 1,
    id: "chatcmpl-llama",
    model: "m",
    system_fingerprint: "b6000",
    object: "chat.completion.chunk",
  },
  deepseek: { id: "ds-1", object: "chat.completion.chunk", created: 1, model: "m", system_fingerprint: "fp_ds" },
};

const toHead = (dialect: Dialect): Record<string, unknown> =>
  HEADS[dialect] ?? { id: `chatcmpl-${dialect}`, object: "chat.completion.chunk", created: 1, model: "m" };

const data = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`;
const chunk = (dialect: Dialect, delta: unknown, finish_reason: string | null = null): string =>
  data({ ...toHead(dialect), choices: [{ index: 0, delta, logprobs: null, finish_reason }] });

/** Returns the frame of one item as this server streams it. `index` counts the items. */
export const dialectFrame = (dialect: Dialect, outputItem: OutputItem, index: number): string => {
  if ("search" in outputItem) throw new Error("chat completions have no web search");
  if ("text" in outputItem) return toTextFrame(dialect, outputItem.text);
  if ("reasoning" in outputItem) return toReasoningFrame(dialect, outputItem.reasoning);
  if ("call" in outputItem) return toCallFrames(dialect, outputItem.call, index);
  return toEndFrames(dialect, outputItem);
};

const toTextFrame = (dialect: Dialect, content: string): string =>
  // DeepSeek sends comments while it is busy, and every delta has both members.
  dialect === "deepseek"
    ? `: keep-alive\n\n${chunk(dialect, { content, reasoning_content: null })}`
    : chunk(dialect, dialect === "ollama" ? { role: "assistant", content } : { content });

const toReasoningFrame = (dialect: Dialect, thought: string): string => {
  switch (dialect) {
    case "vllm":
      return chunk(dialect, { reasoning: thought });
    case "ollama":
      return chunk(dialect, { role: "assistant", content: "", reasoning: thought });
    case "deepseek":
      return chunk(dialect, { content: null, reasoning_content: thought });
    case "llamacpp": {
      // Started with `--reasoning-format none`: the model's tags are part of the text, token by token.
      const text = `<think>\n${thought}\n</think>\n\n`;
      return (text.match(/.{1,3}/gs) ?? []).map((content) => chunk(dialect, { content })).join("");
    }
    case "groq":
      return chunk(dialect, { reasoning: thought });
    case "tgi":
    case "lmstudio":
      return chunk(dialect, { content: `<think>${thought}</think>` });
    default:
      return chunk(dialect, { reasoning_content: thought });
  }
};

const UNSPLIT_CALLS: ReadonlySet<Dialect> = new Set(["ollama", "mistral", "xai", "groq"] as const);

const toCallFrames = (
  dialect: Dialect,
  { id, name, args }: { id: string; name: string; args: string },
  index: number,
): string => {
  const base = { index, id, type: "function" };
  // Some servers send a call in one piece.
  if (UNSPLIT_CALLS.has(dialect)) {
    return chunk(dialect, {
      role: "assistant",
      content: "",
      tool_calls: [{ ...base, function: { name, arguments: args } }],
    });
  }
  const half = Math.ceil(args.length / 2);
  const toArgumentFrame = (text: string) => chunk(dialect, { tool_calls: [{ index, function: { arguments: text } }] });
  const firstCall = { ...base, function: { name, arguments: "" } };
  return (
    chunk(dialect, { tool_calls: [firstCall] }) +
    toArgumentFrame(args.slice(0, half)) +
    toArgumentFrame(args.slice(half))
  );
};

const toEndFrames = (dialect: Dialect, { finish, usage }: Extract<OutputItem, { finish: unknown }>): string => {
  const { input = 7, output = 5, cached = 0, thought = 0 } = usage ?? {};
  const counts = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
  const end = chunk(dialect, dialect === "deepseek" ? { content: "", reasoning_content: null } : {}, finish);
  const details = { prompt_tokens_details: { cached_tokens: cached } };
  const byDialect: Partial<Record<Dialect, Record<string, unknown>>> = {
    vllm: { choices: [], usage: { ...counts, ...details } },
    // Ollama does not report cached prompt tokens.
    ollama: { choices: [], usage: counts },
    llamacpp: { choices: [], usage: { ...counts, ...details }, timings: { cache_n: cached, predicted_n: output } },
    deepseek: {
      choices: [],
      usage: {
        ...counts,
        prompt_cache_hit_tokens: cached,
        prompt_cache_miss_tokens: input - cached,
        completion_tokens_details: { reasoning_tokens: thought },
      },
    },
    // Moonshot and LM Studio send counts in the last chunk of the answer.
    kimi: { choices: [], usage: { ...counts, cached_tokens: cached } },
    lmstudio: { choices: [], usage: counts },
    tgi: { choices: [], usage: counts },
    mistral: { choices: [], usage: counts },
  };
  const lastChunk = byDialect[dialect] ?? { choices: [], usage: { ...counts, ...details } };
  return `${end}${data({ ...toHead(dialect), ...lastChunk })}data: [DONE]\n\n`;
};

/** Returns what the server sends for an error in the middle of a stream. */
export const toStreamError = (dialect: Dialect): string =>
  ({
    vllm: data({
      error: {
        message: "EngineCore encountered an issue: Internal server error",
        type: "InternalServerError",
        code: 500,
      },
    }),
    ollama: data({ error: "an internal server error was encountered" }),
    llamacpp: `error: ${JSON.stringify({ code: 500, message: "internal error", type: "server_error" })}\n\n`,
    deepseek: chunk(dialect, { content: "" }, "insufficient_system_resource"),
    mistral: chunk(dialect, { content: "" }, "error"),
    kimi: data({ error: { message: "The engine is currently overloaded", type: "engine_overloaded_error" } }),
    qwen: data({ error: { message: "Internal server error!", type: "internal_error", code: "internal_error" } }),
    zai: chunk(dialect, { content: "" }, "network_error"),
    xai: data({ error: { message: "Service temporarily unavailable. The model is at capacity.", code: 503 } }),
    groq: data({ error: { message: "over capacity", type: "internal_server_error" } }),
    lmstudio: `event: error\ndata: {"error":{"message":"The model has crashed: internal server error"}}\n\n`,
    tgi: data({ error: { message: "Request failed during generation: server error", error_type: "generation" } }),
  })[dialect];

/** Returns the server's error for a prompt that is too long. */
export const toPromptTooLong = (dialect: Dialect): { status: number; body: unknown } => {
  const { status = 400, ...error } = PROMPT_ERRORS[dialect];
  return { status, body: { error } };
};

type PromptError = { readonly status?: number; readonly message: string; readonly [name: string]: unknown };
const PROMPT_ERRORS: Readonly<Record<Dialect, PromptError>> = {
  vllm: {
    message: "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens.",
    type: "BadRequestError",
    param: null,
    code: 400,
  },
  ollama: { message: "the input length exceeds the context length", type: "invalid_request_error", param: null },
  llamacpp: {
    message: "the request exceeds the available context size, try increasing it",
    type: "exceed_context_size_error",
    code: 400,
    n_prompt_tokens: 5_000,
    n_ctx: 4_096,
  },
  deepseek: {
    message: "This model's maximum context length is 131072 tokens. However, you requested 140000 tokens.",
    type: "invalid_request_error",
    param: null,
    code: "invalid_request_error",
  },
  mistral: {
    message: "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
    code: 3051,
  },
  kimi: { message: "Invalid request: Your request exceeded model token limit: 262144", type: "invalid_request_error" },
  qwen: { message: "Range of input length should be [1, 129024]", code: "invalid_parameter_error" },
  zai: { message: "Prompt exceeds max length", code: "1261" },
  xai: { message: "This model's maximum prompt length is 131072 but the request contains 537812 tokens." },
  groq: {
    status: 413,
    message: "Request too large for model `m` on tokens per minute (TPM): Limit 6000, Requested 7000",
    type: "tokens",
    code: "rate_limit_exceeded",
  },
  lmstudio: { message: "The number of tokens to keep from the initial prompt is greater than the context length." },
  tgi: {
    status: 422,
    message: "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000",
    type: "validation",
  },
};
