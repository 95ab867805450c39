// Finds references to data that a provider stores: responses, conversations, prompts, files, skills, caches and containers of everyone who
// uses its key, which all callers of the gateway share. Pure.
import type { Dialect } from "./endpoint.ts";
import { isObject, type Json, pushObjects } from "./json.ts";

/** Members that contain the caller's or the model's own data: their content has no meaning to the provider. */
const FREE = new Set([
  ...["parameters", "input_schema", "output_schema", "schema", "json_schema", "response_format", "metadata", "labels"],
  ...["parametersJsonSchema", "responseSchema", "responseJsonSchema", "response_schema", "parameters_json_schema"],
  // `response` is a tool's result for Gemini; files are next to it.
  ...["args", "response", "annotations", "citations", "arguments"],
]);

const isGiven = (value: unknown): boolean =>
  Array.isArray(value) ? value.length > 0 : value !== undefined && value !== null && value !== "";

/** Members that are references at any depth outside of FREE. */
const ANYWHERE: Readonly<Record<Dialect, readonly string[]>> = {
  anthropic: ["file_id"],
  openai: ["file_id", "file_ids", "vector_store_ids", "skill_id", "container_id"],
  google: [
    ...["fileSearchStoreNames", "file_search_store_names", "cachedContent", "cached_content"],
    ...["vertexAiSearch", "vertex_ai_search", "vertexRagStore", "vertex_rag_store"],
  ],
};

/** Members that are references at the top level. */
const TOP_LEVEL: Readonly<Record<Dialect, readonly string[]>> = {
  anthropic: [],
  openai: ["previous_response_id", "conversation"],
  google: [],
};

/** Further members that identify a reference. */
const MARKS: Readonly<Record<Dialect, readonly string[]>> = {
  anthropic: ["container", "skills", "skill_id", "id", "type"],
  openai: ["container", "prompt", "audio", "input", "id", "type", "role"],
  google: ["fileData", "file_data", "fileUri", "file_uri"],
};

/** Returns the member names that are inspected in a body of a dialect. */
export const findReferences = (dialect: Dialect): readonly string[] => [
  ...ANYWHERE[dialect],
  ...TOP_LEVEL[dialect],
  ...MARKS[dialect],
];

/** Yields the objects of a body that have a meaning to the provider, including itself. */
export function* iterateMeaningfulObjects(body: Json): Generator<Json> {
  const waiting: object[] = [body];
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    if (Array.isArray(next)) {
      pushObjects(waiting, next);
      continue;
    }
    const part = next as Json;
    yield part;
    const isCall = typeof part.type === "string" && part.type.endsWith("tool_use");
    for (const name in part) {
      const inner = part[name];
      if (typeof inner !== "object" || inner === null || FREE.has(name) || (isCall && name === "input")) continue;
      waiting.push(inner);
    }
  }
}

/** Returns the member of a call that refers to stored data; undefined if none exists. */
export const findStored = (dialect: Dialect, body: Json): string | undefined => {
  const topMember = TOP_LEVEL[dialect].find((name) => isGiven(body[name]));
  if (topMember !== undefined) return topMember;
  if (dialect === "openai") {
    if (isObject(body.prompt) && isGiven(body.prompt.id)) return "prompt.id";
    const items = Array.isArray(body.input) ? body.input.filter(isObject) : [];
    const reference = items.find(isReference);
    if (reference) return typeof reference.type === "string" ? reference.type : "item_reference";
  }
  for (const part of iterateMeaningfulObjects(body)) {
    // Files written by a sandbox are named in the response and sent back with the history.
    if (isSandboxOutput(part)) continue;
    const found = ANYWHERE[dialect].find((name) => isGiven(part[name])) ?? SPECIAL[dialect](part);
    if (found !== undefined) return found;
  }
  return undefined;
};

const isSandboxOutput = ({ type }: Json): boolean =>
  typeof type === "string" && type.includes("code_execution") && type.endsWith("_output");

/** The members that an item of `input` must contain, by its type: for an item with only an ID, the provider uses its stored data. */
const CONTENT_OF: Readonly<Record<string, readonly string[]>> = {
  item_reference: [],
  reasoning: ["encrypted_content", "content"],
  compaction: ["encrypted_content"],
  image_generation_call: ["result"],
  computer_call: ["action", "actions"],
};
const ANY_CONTENT = [
  ...["content", "encrypted_content", "result", "results", "action", "actions", "operation", "arguments", "input"],
  ...["output", "outputs", "code", "queries", "tools", "error", "execution", "approval_request_id"],
];

/** The type of an item may be omitted: an item with an ID and without a role is also a reference. */
const isReference = (item: Json): boolean => {
  if (item.type === "item_reference") return true;
  if (!isGiven(item.id)) return false;
  if (!isGiven(item.type) && !isGiven(item.role)) return true;
  const contentNames = Object.hasOwn(CONTENT_OF, String(item.type)) ? CONTENT_OF[String(item.type)] : ANY_CONTENT;
  return !contentNames?.some((name) => item[name] !== undefined && item[name] !== null);
};

const findContainer = ({ container }: Json): string | undefined => {
  if (typeof container === "string" && container !== "") return "container";
  return isObject(container) && isGiven(container.id) ? "container.id" : undefined;
};

/** True for URLs that anyone can read, such as those of public videos. Everything else is a file of the key's owner. */
const isPublicAddress = (address: unknown): boolean => {
  if (typeof address !== "string" || !/^https?:\/\//i.test(address) || !URL.canParse(address)) return false;
  // Also checks the host as written, because the provider's parser may interpret the address differently.
  return ![address.split("/", 3)[2] ?? "", new URL(address).hostname].some((host) => STORES_FILES.test(host));
};

const STORES_FILES = /(?:googleapis\.com|cloud\.google\.com)(?:[^a-z0-9-]|$)/i;

const SPECIAL: Readonly<Record<Dialect, (part: Json) => string | undefined>> = {
  anthropic: (part) => {
    // Anthropic's own skills are public.
    const isOwnSkill = isGiven(part.skill_id) && part.type !== "anthropic";
    return findContainer(part) ?? (isOwnSkill ? "skill_id" : undefined);
  },
  openai: (part) => {
    if (part.type === "item_reference" || part.type === "container_reference") return part.type;
    return findContainer(part) ?? (isObject(part.audio) && isGiven(part.audio.id) ? "audio.id" : undefined);
  },
  google: (part) => {
    const file = [part.fileData, part.file_data].find(isObject);
    const address = file?.fileUri ?? file?.file_uri;
    return isGiven(address) && !isPublicAddress(address) ? "fileUri" : undefined;
  },
};
