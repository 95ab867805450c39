// Tests a provider before it is saved: whether its URL responds to this key, which models it has, and whether one of them answers.
import { notFound } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import type { TriedProvider, TryModelProvider } from "#schema/chats/model-provider.ts";
import { requiresBaseUrl } from "#src/llm/adapters.ts";
import type { ConfiguredProvider } from "#src/llm/configured-model.ts";
import { listModels, ModelListError } from "#src/llm/model-list.ts";
import type { DomainContext } from "../context.ts";
import { parseBaseUrl, parseKey, parseKind } from "./model-input.ts";
import { sendTestPrompt } from "./try-model.ts";

const LIST_TIMEOUT_MS = 10_000;
const DEFAULT_CONTEXT_LIMIT = 128_000;

type Deps = Pick<DomainContext, "clock" | "modelSettings" | "modelFetch">;

/** Returns the result; nothing is stored. Rejects with 400, or 404 for an unknown provider. */
export const tryProvider = async (
  deps: Deps,
  input: TryModelProvider,
  user_id: string,
  stop: AbortSignal,
): Promise<TriedProvider> => {
  const provider = await loadDraft(deps, input);
  let models: string[];
  const timeout = new AbortController();
  const timer = deps.clock.after(LIST_TIMEOUT_MS, () => timeout.abort());
  try {
    const signal = AbortSignal.any([stop, timeout.signal]);
    models = await listModels(deps.modelFetch, { ...provider, key: provider.key() }, signal);
  } catch (error) {
    stop.throwIfAborted();
    const problem = error instanceof ModelListError ? error.message : "The provider did not respond within 10 seconds.";
    return { works: false, models: [], problem };
  } finally {
    timer.cancel();
  }
  if (input.model === undefined) return { works: true, models };
  const { draft, id } = draftModel(deps, provider, input.model);
  const info = draft.resolve(id);
  if (!info) return { works: false, models, problem: "The provider needs a key." };
  const { works, answer, problem } = await sendTestPrompt(deps, draft, info, user_id, stop);
  return { works, models, ...(works ? { answer } : { problem: problem ?? "The model is not responding." }) };
};

const draftModel = ({ modelSettings }: Deps, provider: ConfiguredProvider, model: string) => {
  const id = uuid();
  const identity = { id, provider_id: provider.id, model, display_name: model, enabled: true, is_default: true };
  const config = { ...identity, context_limit: DEFAULT_CONTEXT_LIMIT, compression_threshold: null, model_config: {} };
  return { id, draft: modelSettings.draft(provider, config) };
};

/** Returns the provider as it would be stored. A stored key is never sent to a URL other than the one it was entered for (rule MO-5). */
const loadDraft = async ({ modelSettings }: Deps, input: TryModelProvider): Promise<ConfiguredProvider> => {
  const { providers } = await modelSettings.catalog();
  const providerId = input.provider_id?.toLowerCase();
  const stored = providerId === undefined ? undefined : providers.find(({ id }) => id === providerId);
  if (providerId !== undefined && !stored) throw notFound();
  const kind = stored?.provider ?? parseKind(input.provider ?? "");
  const base_url = parseBaseUrl(input.base_url ?? stored?.base_url ?? "", requiresBaseUrl(kind));
  const isSameOrigin = stored !== undefined && getOrigin(base_url) === getOrigin(stored.base_url);
  const key = input.api_key === undefined ? (isSameOrigin ? stored.key() : "") : parseKey(input.api_key);
  const identity = {
    id: stored?.id ?? uuid(),
    provider: kind,
    display_name: stored?.display_name ?? kind,
    enabled: true,
  };
  return { ...identity, base_url, has_api_key: key !== "", key: () => key };
};

const getOrigin = (base_url: string): string => (base_url === "" ? "" : new URL(base_url).origin);
