// Maps a requested model name to the providers for the call. Pure.
import type { ModelCatalog } from "#actors/models/model-settings.ts";
import type { GatewayName } from "#schema/ai/gateway.ts";
import type { ConfiguredModel, ConfiguredProvider } from "#src/llm/configured-model.ts";
import { type Dialect, KINDS_OF } from "#src/llm/gateway/endpoint.ts";

/** A possible destination of a call. */
export type Target = {
  readonly provider: ConfiguredProvider;
  readonly model: string;
  /** The model as configured for chats, for its price; undefined if chats do not have it. */
  readonly config: ConfiguredModel | undefined;
  /**
   * Whether an administrator configured the model's name; otherwise the caller chose it through a name that allows any model of a provider.
   */
  readonly isNamed: boolean;
};

/** The properties of a caller that decide which model names it can use. */
export type ModelCaller = {
  readonly groups: readonly string[];
  /** The template of the calling workspace; undefined for a person's token. */
  readonly template_id: string | undefined;
};

/**
 * Returns the targets for a model, in order of preference. Empty if no name matches or the caller may not use it; the two cases are not
 * distinguished, so that other callers' names stay hidden.
 */
export const listTargets = (
  catalog: ModelCatalog,
  dialect: Dialect,
  model: string,
  caller: ModelCaller,
): readonly Target[] => {
  const direct = findTargets(catalog, dialect, model, caller);
  const fallback = catalog.settings.default_names[dialect];
  return direct.length > 0 || fallback === undefined ? direct : findTargets(catalog, dialect, fallback, caller);
};

const findTargets = (
  catalog: ModelCatalog,
  dialect: Dialect,
  model: string,
  caller: ModelCaller,
): readonly Target[] => {
  const mapping = catalog.settings.names.find((one) => matchesPattern(one.name, model));
  // A name that an administrator has mapped and restricted must not be reachable in another way.
  if (mapping) return isAllowed(mapping, caller) ? toTargets(catalog, dialect, mapping, model) : [];
  return catalog.models.flatMap((config) => {
    const provider =
      config.enabled && config.model === model ? findUsableProvider(catalog, dialect, config.provider_id) : undefined;
    return provider ? [{ provider, model, config, isNamed: true }] : [];
  });
};

const toTargets = (catalog: ModelCatalog, dialect: Dialect, { targets }: GatewayName, requested: string): Target[] =>
  targets.flatMap(({ provider_id, model: given }) => {
    const model = given ?? requested;
    const provider = findUsableProvider(catalog, dialect, provider_id);
    const config = catalog.models.find((one) => one.provider_id === provider_id && one.model === model);
    const isNamed = given !== undefined || config !== undefined;
    return provider ? [{ provider, model, config, isNamed }] : [];
  });

const findUsableProvider = (
  { providers }: ModelCatalog,
  dialect: Dialect,
  id: string,
): ConfiguredProvider | undefined =>
  providers.find((one) => one.id === id && one.enabled && KINDS_OF[dialect].includes(one.provider));

const isAllowed = ({ group_ids, template_ids }: GatewayName, { groups, template_id }: ModelCaller): boolean =>
  (group_ids === undefined || group_ids.some((id) => groups.includes(id))) &&
  (template_ids === undefined || (template_id !== undefined && template_ids.includes(template_id)));

/** Returns whether a name that may contain `*` matches the requested model. */
export const matchesPattern = (pattern: string, model: string): boolean => {
  const [first = "", ...rest] = pattern.split("*");
  if (rest.length === 0) return pattern === model;
  const last = rest.pop() ?? "";
  if (!model.startsWith(first) || !model.endsWith(last) || model.length < first.length + last.length) return false;
  let at = first.length;
  for (const part of rest) {
    const found = model.indexOf(part, at);
    if (found < 0 || found + part.length > model.length - last.length) return false;
    at = found + part.length;
  }
  return true;
};

/** Returns the names a caller may request, with `*` unexpanded, without duplicates. */
export const listNames = (catalog: ModelCatalog, dialect: Dialect, caller: ModelCaller): string[] => {
  const names = catalog.settings.names.filter(
    (one) => isAllowed(one, caller) && toTargets(catalog, dialect, one, one.name).length > 0,
  );
  const own = catalog.models.filter(({ model }) => findTargets(catalog, dialect, model, caller).length > 0);
  return [...new Set([...names.map(({ name }) => name), ...own.map(({ model }) => model)])];
};
