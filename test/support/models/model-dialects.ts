// Four servers of OpenAI's chat-completions protocol as their public documentation has them: how each streams thoughts, calls and counters,
// how it says that something is wrong, and what it refuses. vLLM (docs.vllm.ai), Ollama (docs.ollama.com), llama.cpp (tools/server),
// DeepSeek (api-docs.deepseek.com). Pure; used by model-frames.ts and model-server.ts.
import type { Said } from "./model-frames.ts";

export const DIALECTS = ["vllm", "ollama", "llamacpp", "deepseek"] as const;
export type Dialect = (typeof DIALECTS)[number];
export const isDialect = (protocol: string): protocol is Dialect => DIALECTS.some((one) => one === protocol);

const HEADS: Readonly<Record<Dialect, Record<string, unknown>>> = {
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

const data = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`;
const chunk = (dialect: Dialect, delta: unknown, finish_reason: string | null = null): string =>
  data({ ...HEADS[dialect], choices: [{ index: 0, delta, logprobs: null, finish_reason }] });

/** One thing that is said, as this server streams it. `index` counts what was said. */
export const dialectFrame = (dialect: Dialect, said: Said, index: number): string => {
  if ("search" in said) throw new Error("chat completions search nothing");
  if ("text" in said) return wordsOf(dialect, said.text);
  if ("reasoning" in said) return thoughtsOf(dialect, said.reasoning);
  if ("call" in said) return callOf(dialect, said.call, index);
  return endOf(dialect, said);
};

const wordsOf = (dialect: Dialect, content: string): string =>
  // DeepSeek sends comments while it is busy, and every delta has both members.
  dialect === "deepseek"
    ? `: keep-alive\n\n${chunk(dialect, { content, reasoning_content: null })}`
    : chunk(dialect, dialect === "ollama" ? { role: "assistant", content } : { content });

const thoughtsOf = (dialect: Dialect, thought: string): string => {
  switch (dialect) {
    case "vllm":
      return chunk(dialect, { reasoning: thought });
    case "ollama":
      return chunk(dialect, { role: "assistant", content: "", reasoning: thought });
    case "deepseek":
      return chunk(dialect, { content: null, reasoning_content: thought });
    case "llamacpp": {
      // Started with `--reasoning-format none`: the tags of the model stand in the text, token by token.
      const text = `<think>\n${thought}\n</think>\n\n`;
      return (text.match(/.{1,3}/gs) ?? []).map((content) => chunk(dialect, { content })).join("");
    }
  }
};

const callOf = (
  dialect: Dialect,
  { id, name, args }: { id: string; name: string; args: string },
  index: number,
): string => {
  const at = { index, id, type: "function" };
  // Ollama sends whole calls.
  if (dialect === "ollama") {
    return chunk(dialect, {
      role: "assistant",
      content: "",
      tool_calls: [{ ...at, function: { name, arguments: args } }],
    });
  }
  const half = Math.ceil(args.length / 2);
  const more = (text: string) => chunk(dialect, { tool_calls: [{ index, function: { arguments: text } }] });
  const first = { ...at, function: { name, arguments: "" } };
  return chunk(dialect, { tool_calls: [first] }) + more(args.slice(0, half)) + more(args.slice(half));
};

const endOf = (dialect: Dialect, { finish, usage }: Extract<Said, { finish: unknown }>): string => {
  const { input = 7, output = 5, cached = 0, thought = 0 } = usage ?? {};
  const counted = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
  const end = chunk(dialect, dialect === "deepseek" ? { content: "", reasoning_content: null } : {}, finish);
  const details = { prompt_tokens_details: { cached_tokens: cached } };
  const last = {
    vllm: { choices: [], usage: { ...counted, ...details } },
    // It does not say what it knew of the prompt.
    ollama: { choices: [], usage: counted },
    llamacpp: { choices: [], usage: { ...counted, ...details }, timings: { cache_n: cached, predicted_n: output } },
    deepseek: {
      choices: [],
      usage: {
        ...counted,
        prompt_cache_hit_tokens: cached,
        prompt_cache_miss_tokens: input - cached,
        completion_tokens_details: { reasoning_tokens: thought },
      },
    },
  }[dialect];
  return `${end}${data({ ...HEADS[dialect], ...last })}data: [DONE]\n\n`;
};

/** How it says in the middle of a stream that it cannot go on. */
export const brokenStream = (dialect: Dialect): string =>
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
  })[dialect];

/** How it says that a prompt is too long. */
export const tooLong = (dialect: Dialect): { status: number; body: unknown } => ({
  status: 400,
  body: {
    error: {
      vllm: {
        message: "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens.",
        type: "BadRequestError",
        param: null,
        code: 400,
      },
      ollama: {
        message: "the input length exceeds the context length",
        type: "invalid_request_error",
        param: null,
        code: null,
      },
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
    }[dialect],
  },
});

type Message = { readonly role: string; readonly content?: unknown; readonly [more: string]: unknown };

/** What this server refuses by itself; undefined when it takes the request. */
export const refusalBy = (
  dialect: Dialect,
  body: Readonly<Record<string, unknown>>,
): { status: number; body: unknown } | undefined => {
  const messages = (body.messages ?? []) as Message[];
  const hasPictures = messages.some(
    ({ content }) => Array.isArray(content) && content.some((part: { type?: string }) => part.type === "image_url"),
  );
  // A text model, and a server without the model's eyes.
  if (dialect === "deepseek" && hasPictures) {
    const message =
      "Failed to deserialize the JSON body into the target type: messages[3]: unknown variant `image_url`, expected `text`";
    return {
      status: 400,
      body: { error: { message, type: "invalid_request_error", param: null, code: "invalid_request_error" } },
    };
  }
  if (dialect === "llamacpp" && hasPictures) {
    const message = "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj";
    return { status: 500, body: { error: { code: 500, message, type: "server_error" } } };
  }
  const isOwed =
    dialect === "deepseek" && messages.some((one) => one.tool_calls !== undefined && !one.reasoning_content);
  if (isOwed) {
    const message = "The `reasoning_content` in the thinking mode must be passed back to the API.";
    return {
      status: 400,
      body: { error: { message, type: "invalid_request_error", param: null, code: "invalid_request_error" } },
    };
  }
  return undefined;
};
