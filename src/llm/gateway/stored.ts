// References to what a provider has stored: answers, conversations, prompts, files, caches and containers of everyone who uses its key, and
// callers of the gateway share that key. Pure.
import type { Dialect } from "./endpoint.ts";
import { isObject, type Json } from "./json.ts";

/** What a caller defines or a model has made up: members within mean nothing to the provider. */
const FREE = new Set([
  ...["parameters", "input_schema", "output_schema", "schema", "json_schema", "response_format", "metadata", "labels"],
  ...["parametersJsonSchema", "responseSchema", "responseJsonSchema", "response_schema", "parameters_json_schema"],
  ...["args", "functionResponse", "function_response", "annotations", "citations", "arguments"],
]);

const isGiven = (value: unknown): boolean =>
  Array.isArray(value) ? value.length > 0 : value !== undefined && value !== null && value !== "";

/** Members that refer at any depth outside of what is free. */
const ANYWHERE: Readonly<Record<Dialect, readonly string[]>> = {
  anthropic: ["file_id"],
  openai: ["file_id", "file_ids", "vector_store_ids"],
  google: ["fileSearchStoreNames", "file_search_store_names"],
};

/** Members that refer at the top. */
const ON_TOP: Readonly<Record<Dialect, readonly string[]>> = {
  anthropic: [],
  openai: ["previous_response_id", "conversation"],
  google: ["cachedContent", "cached_content"],
};

/** Returns the member of a call that refers to something stored; undefined: none does. */
export const findStored = (dialect: Dialect, body: Json): string | undefined => {
  const top = ON_TOP[dialect].find((name) => isGiven(body[name]));
  if (top !== undefined) return top;
  if (dialect === "openai" && isObject(body.prompt) && isGiven(body.prompt.id)) return "prompt.id";
  const waiting: unknown[] = [body];
  while (waiting.length > 0) {
    const next = waiting.pop();
    if (Array.isArray(next)) for (const inner of next) waiting.push(inner);
    if (!isObject(next)) continue;
    const found = ANYWHERE[dialect].find((name) => isGiven(next[name])) ?? special(dialect, next);
    // What a sandbox has written is named in the answer, and comes back with the history.
    if (found !== undefined && !isSandboxOutput(next)) return found;
    const isCall = typeof next.type === "string" && next.type.endsWith("tool_use");
    for (const [name, inner] of Object.entries(next)) {
      if (typeof inner === "object" && !FREE.has(name) && !(isCall && name === "input")) waiting.push(inner);
    }
  }
  return undefined;
};

const isSandboxOutput = ({ type }: Json): boolean => typeof type === "string" && /code_execution.*_output$/.test(type);

const special = (dialect: Dialect, part: Json): string | undefined => {
  if (dialect === "google") {
    const file = [part.fileData, part.file_data].find(isObject);
    const address = file?.fileUri ?? file?.file_uri;
    // Other addresses, such as those of public videos, are public.
    return typeof address === "string" && /^(?:files\/|https?:\/\/[^/]*googleapis\.com\/)/i.test(address)
      ? "fileUri"
      : undefined;
  }
  const { container } = part;
  if (typeof container === "string" && container !== "") return "container";
  if (isObject(container) && isGiven(container.id)) return "container.id";
  if (dialect !== "openai") return undefined;
  if (part.type === "item_reference") return "item_reference";
  return part.type === "container_reference" ? "container_reference" : undefined;
};
