// Parses responses of local model servers defensively, because any program may listen on these ports. Pure.
import type { LocalModelServer } from "#schema/administration/local-models.ts";

type Model = LocalModelServer["models"][number];
type Kind = LocalModelServer["kind"];

const MAX_MODELS = 200;
const MAX_TEXT_CHARS = 256;

const toRecord = (value: unknown): Record<string, unknown> =>
  typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};

/** Returns the property with this name if it is a string, else an empty string. */
export const readText = (value: unknown, name: string): string => {
  const text = toRecord(value)[name];
  return typeof text === "string" ? text.slice(0, MAX_TEXT_CHARS) : "";
};

const parseCount = (value: unknown): number | null =>
  typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? value : null;

const makeModel = (model: string): Model => ({
  model,
  size_bytes: null,
  parameters: "",
  context_limit: null,
  tools: null,
});

/** Parses Ollama's `/api/tags`; undefined if the response is something else. */
export const parseOllamaModels = (answer: unknown): Model[] | undefined => {
  const { models } = toRecord(answer);
  if (!Array.isArray(models)) return undefined;
  return models.slice(0, MAX_MODELS).flatMap((one) => {
    const model = readText(one, "name") || readText(one, "model");
    if (model === "") return [];
    const { size, details } = toRecord(one);
    return [{ ...makeModel(model), size_bytes: parseCount(size), parameters: readText(details, "parameter_size") }];
  });
};

/** Adds a model's capabilities and context length from Ollama's `/api/show`. */
export const parseOllamaModel = (model: Model, answer: unknown): Model => {
  const { capabilities, model_info } = toRecord(answer);
  const info = toRecord(model_info);
  const length = Object.entries(info).find(([key]) => key.endsWith(".context_length"))?.[1];
  return {
    ...model,
    context_limit: parseCount(length),
    tools: Array.isArray(capabilities) ? capabilities.includes("tools") : null,
  };
};

/** Servers by the `owned_by` that they report for their models, with their display names. */
const OWNERS: readonly (readonly [RegExp, Kind, string])[] = [
  [/^llamacpp$/i, "llama.cpp", "llama.cpp"],
  [/^vllm$/i, "vllm", "vLLM"],
  [/^organization_owner$/i, "lm-studio", "LM Studio"],
];

/** Parses the model list of an OpenAI-compatible server and identifies the server by the owner field; undefined if it is something else. */
export const parseModelList = (answer: unknown): { kind: Kind; name: string; models: Model[] } | undefined => {
  const { data } = toRecord(answer);
  if (!Array.isArray(data)) return undefined;
  const models = data.slice(0, MAX_MODELS).flatMap((one) => {
    const model = readText(one, "id");
    const { max_model_len, meta } = toRecord(one);
    const context_limit = parseCount(max_model_len) ?? parseCount(toRecord(meta).n_ctx_train);
    return model === "" ? [] : [{ ...makeModel(model), context_limit }];
  });
  const owner = readText(data[0], "owned_by");
  const [, kind, name] = OWNERS.find(([pattern]) => pattern.test(owner)) ?? [
    undefined,
    "other" as const,
    "Server of models",
  ];
  return { kind, name, models };
};
