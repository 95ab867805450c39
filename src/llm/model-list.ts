// Lists the models of a provider, from the provider's own list. Used when a provider is set up, so that a model can be chosen instead of
// typed.
import { readJson } from "#base/json/read.ts";
import { describeNetworkError } from "#base/network/failure-words.ts";
import type { ProviderKind } from "#schema/chats/model-provider.ts";
import type { GuardedFetch } from "./fetch.ts";

const MAX_LIST_BYTES = 4 * 1024 * 1024;
const MAX_MODELS = 1_000;

type ListRequest = { readonly provider: ProviderKind; readonly base_url: string; readonly key: string };

/** The provider refuses or is unreachable. The message is for users and contains no key. */
export class ModelListError extends Error {}

/** The list endpoint of each kind, and how it receives the key. */
const LISTS: Readonly<
  Record<Exclude<ProviderKind, "demo">, { at: string; path: string; headers: (key: string) => Record<string, string> }>
> = {
  anthropic: {
    at: "https://api.anthropic.com/v1",
    path: "/models?limit=1000",
    headers: (key) => ({ "x-api-key": key, "anthropic-version": "2023-06-01" }),
  },
  openai: { at: "https://api.openai.com/v1", path: "/models", headers: (key) => ({ authorization: `Bearer ${key}` }) },
  google: {
    at: "https://generativelanguage.googleapis.com/v1beta",
    path: "/models?pageSize=1000",
    headers: (key) => ({ "x-goog-api-key": key }),
  },
  "openai-compat": {
    at: "",
    path: "/models",
    headers: (key): Record<string, string> => (key === "" ? {} : { authorization: `Bearer ${key}` }),
  },
};

/** Returns the names, sorted; empty if the server has no such endpoint. Throws `ModelListError`, and the signal's reason. */
export const listModels = async (
  fetch: GuardedFetch,
  requested: ListRequest,
  signal: AbortSignal,
): Promise<string[]> => {
  if (requested.provider === "demo") return ["demo"];
  const { at, path, headers } = LISTS[requested.provider];
  const url = `${requested.base_url || at}${path}`;
  const response = await fetch(url, { headers: headers(requested.key), signal }).catch((error: unknown) => {
    signal.throwIfAborted();
    throw new ModelListError(`${url} cannot be reached: ${describeNetworkError(error)}.`);
  });
  if (response.status === 401 || response.status === 403) throw new ModelListError("The provider rejected the key.");
  // A self-hosted server may support chats and have no list.
  if (response.status === 404 || response.status === 405) return [];
  if (!response.ok) throw new ModelListError(`${url} answered ${response.status}.`);
  const names = await listNames(response);
  return names.slice(0, MAX_MODELS).sort();
};

type ListedModel = { readonly id?: unknown; readonly name?: unknown };

/** Parses `{"data": [{"id"}]}`, or Google's `{"models": [{"name": "models/..."}]}`. */
const listNames = async (response: Response): Promise<string[]> => {
  try {
    const { data, models } = (await readJson(response, { maxBytes: MAX_LIST_BYTES })) as {
      data?: ListedModel[];
      models?: ListedModel[];
    };
    return (data ?? models ?? []).flatMap(({ id, name }) => {
      const modelName = id ?? name;
      return typeof modelName === "string" && modelName !== "" ? [modelName.replace(/^models\//, "")] : [];
    });
  } catch {
    return [];
  }
};
