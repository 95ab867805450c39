// A user's preferred model for chats whose request names none (facts/chats 4.19).
import { readChatSetting, readModelOverride } from "#db/chats/settings.ts";
import type { ModelOverride, OverrideContext } from "#schema/chats/model-override.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import type { DomainContext } from "../context.ts";

/** Returns the effective settings; defaults while nothing is set. */
export const loadOverride = async (
  { store }: Pick<DomainContext, "store">,
  organization_id: string,
  user_id: string,
  context: OverrideContext,
): Promise<ModelOverride> => {
  const stored = await readModelOverride(store, { organization_id, user_id, context });
  return { context, ...(stored ?? { mode: context === "root" ? "chat_default" : "deployment_default" }) };
};

/** Returns the model and effort for a chat whose request names none; undefined if nothing is set or it cannot be used now. */
export const findPreferredModel = async (
  ctx: DomainContext,
  caller: UserCaller,
  organization_id: string,
): Promise<{ model_config_id: string; reasoning_effort: string } | undefined> => {
  if (!(await readChatSetting(ctx.store, "allow_model_overrides"))) return undefined;
  const {
    mode,
    model_config_id,
    reasoning_effort = "",
  } = await loadOverride(ctx, organization_id, caller.user_id, "root");
  if (mode !== "model" || model_config_id === undefined || !ctx.models.resolve(model_config_id)) return undefined;
  return { model_config_id, reasoning_effort };
};
