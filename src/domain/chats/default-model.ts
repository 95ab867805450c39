// Decides which model becomes the default, which must be one that responds (rule MO-65).

import type { ModelConfigRow, NewModel } from "#actors/models/model-settings.ts";
import { AppError, conflict } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import type { DomainContext } from "../context.ts";
import { sendTestPrompt, tryModel } from "./try-model.ts";

const MAX_CANDIDATES = 5;
const CANDIDATE_TIMEOUT_MS = 15_000;

type Deps = Pick<DomainContext, "clock" | "models" | "modelSettings">;
type ModelCaller = { readonly user_id: string; readonly signal: AbortSignal };

const notResponding = (problem = ""): AppError =>
  new AppError("precondition_failed", `The model is not responding. ${problem}`.trim());

/** Rejects with 412 when the new default does not respond, with 409 when it is disabled, and with 404. */
export const checkNewDefault = async (deps: Deps, id: string, { user_id, signal }: ModelCaller): Promise<void> => {
  const { models } = await deps.modelSettings.list();
  if (models.find((one) => one.id === id)?.is_default) return;
  const { works, problem } = await tryModel(deps, id, user_id, signal);
  if (!works) throw notResponding(problem);
};

/**
 * Returns whether a new model becomes the default: if the caller says so, or if none exists yet and it responds. Rejects with 412 when
 * the caller requests it but it does not respond, and with 409 when it is disabled.
 */
export const shouldBecomeDefault = async (
  deps: Deps,
  model: Omit<NewModel, "is_default">,
  requested: boolean | undefined,
  { user_id, signal }: ModelCaller,
): Promise<boolean> => {
  const { providers, models } = await deps.modelSettings.catalog();
  const hasDefaultOrDuplicate = models.some(
    (one) => one.is_default || (one.provider_id === model.provider_id && one.model === model.model),
  );
  if (requested === false || (requested === undefined && (hasDefaultOrDuplicate || !model.enabled))) return false;
  const provider = providers.find((one) => one.id === model.provider_id);
  // The built-in demo always responds.
  if (provider?.provider === "demo" && provider.enabled && model.enabled) return true;
  const draft = provider && deps.modelSettings.draft(provider, { ...model, id: uuid(), is_default: true });
  const info = draft?.resolve(null);
  if (!draft || !info) {
    if (requested === undefined) return false;
    throw conflict("The model or its provider is disabled or has no key.");
  }
  const { works, problem } = await sendTestPrompt(deps, draft, info, user_id, signal);
  if (!works && requested) throw notResponding(problem);
  return works;
};

/**
 * Returns the new default when the models matching `isLeaving` are deleted or disabled: the oldest enabled one that responds. Undefined when
 * the default stays, or when none responds; in the latter case there is no default until one responds.
 */
export const findNextDefault = async (
  deps: Deps,
  isLeaving: (model: ModelConfigRow) => boolean,
  { user_id, signal }: ModelCaller,
): Promise<string | undefined> => {
  const { providers, models } = await deps.modelSettings.list();
  if (!models.some((one) => one.is_default && isLeaving(one))) return;
  const isUsable = (one: ModelConfigRow): boolean =>
    one.enabled && !isLeaving(one) && deps.models.resolve(one.id) !== undefined;
  const candidates = models.filter(isUsable).slice(0, MAX_CANDIDATES);
  const timeout = new AbortController();
  const timer = deps.clock.after(CANDIDATE_TIMEOUT_MS, () => timeout.abort());
  const stop = AbortSignal.any([signal, timeout.signal]);
  const isDemo = (one: ModelConfigRow): boolean =>
    providers.some(({ id, provider }) => id === one.provider_id && provider === "demo");
  const answers = candidates.map(async (one): Promise<boolean> => {
    if (isDemo(one)) return true;
    return await tryModel(deps, one.id, user_id, stop).then(
      ({ works }) => works,
      () => false,
    );
  });
  try {
    for (const [index, answer] of answers.entries()) if (await answer) return candidates[index]?.id;
  } finally {
    timer.cancel();
    timeout.abort();
  }
};
