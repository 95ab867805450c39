// Simulated model servers. Their responses follow the public documentation.
const json = (value: unknown): Response => Response.json(value);

type Handler = (request: Request) => Response | Promise<Response>;
const serve = (routes: Readonly<Record<string, Handler>>) =>
  Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: (request) =>
      routes[`${request.method} ${new URL(request.url).pathname}`]?.(request) ?? new Response("no", { status: 404 }),
  });

const MODEL_DETAILS: Readonly<Record<string, object>> = {
  "qwen3-coder:30b": {
    capabilities: ["completion", "tools"],
    model_info: { "general.architecture": "qwen3moe", "qwen3moe.context_length": 262_144 },
  },
  "gemma3:12b": { capabilities: ["completion", "vision"], model_info: { "gemma3.context_length": 131_072 } },
};

/** Ollama with two models, one of which uses tools; `extraRoutes` adds routes, such as its chat. */
export const startOllama = (extraRoutes: Readonly<Record<string, Handler>> = {}) =>
  serve({
    "GET /api/version": () => json({ version: "0.13.1" }),
    "GET /api/tags": () =>
      json({
        models: [
          { name: "qwen3-coder:30b", size: 19_000_000_000, details: { parameter_size: "30.5B" } },
          { name: "gemma3:12b", size: 8_100_000_000, details: { parameter_size: "12.2B" } },
        ],
      }),
    "POST /api/show": async (request) => {
      const { model } = (await request.json()) as { model: string };
      return json(MODEL_DETAILS[model]);
    },
    ...extraRoutes,
  });

export const startVllm = () =>
  serve({
    "GET /version": () => json({ version: "0.11.0" }),
    "GET /v1/models": () =>
      json({
        object: "list",
        data: [{ id: "mistral-small", object: "model", owned_by: "vllm", max_model_len: 32_768 }],
      }),
  });
