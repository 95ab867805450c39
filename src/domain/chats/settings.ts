// Chat settings, by administrators for all chats and by users for their own, each with an audit log entry (facts/chats 4.15, 4.19).
import { AppError, forbidden, invalidField, notFound } from "#base/errors.ts";
import {
  type ChatSettings,
  deleteCompactionThreshold,
  readChatSetting,
  readCompactionThresholds,
  readModelOverride,
  readOrganizationModel,
  readUserChatSetting,
  type UserChatSettings,
  upsertChatSetting,
  upsertCompactionThreshold,
  upsertModelOverride,
  upsertOrganizationModel,
  upsertUserChatSetting,
} from "#db/chats/settings.ts";
import type { Statement } from "#db/engine/sql.ts";
import { insertAudit } from "#db/reports/audit/audit.ts";
import type {
  OrganizationContext,
  OverrideContext,
  PutModelOverride,
  PutOrganizationOverride,
} from "#schema/chats/model-override.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { toPermissionMode } from "#src/tools/permission-mode.ts";
import { canUpdateOrganization } from "../access.ts";
import type { DomainContext } from "../context.ts";
import { parseEffort } from "./input.ts";

/** Changes a setting for all chats. */
export const setChatSetting = async <K extends keyof ChatSettings>(
  { store, clock }: DomainContext,
  name: K,
  value: ChatSettings[K],
): Promise<void> => {
  const before = { [name]: await readChatSetting(store, name) };
  const entry = { now: clock.now(), action: "write", resource_type: "chat_settings", target: name } as const;
  await store.commit([upsertChatSetting(name, value), insertAudit({ ...entry, before, after: { [name]: value } })]);
};

export const recordingForced = (): AppError =>
  new AppError("conflict", "The server's own settings record the model calls of every chat.");

/** Changes a setting for the caller's own chats. */
export const setUserChatSetting = async <K extends keyof UserChatSettings>(
  ctx: DomainContext,
  { user_id }: UserCaller,
  name: K,
  value: UserChatSettings[K],
): Promise<void> => {
  const before = { [name]: await readUserChatSetting(ctx.store, user_id, name) };
  await ctx.store.commit([
    upsertUserChatSetting(user_id, name, value),
    writeAuditEntry(ctx, user_id, name, addMode(before), addMode({ [name]: value })),
  ]);
};

/** Adds the mode to permissions, whose rules the log shows only to their owner (rules AU-20, AU-21). */
const addMode = (settings: Partial<UserChatSettings>): object => {
  const { permissions } = settings;
  return permissions ? { ...settings, permission_mode: toPermissionMode({ permissions, plan_mode: null }) } : settings;
};

/** Rejects with 403 unless an administrator allows it, and with 409 when the server's settings already enforce it. */
export const setOwnRecording = async (ctx: DomainContext, caller: UserCaller, isEnabled: boolean): Promise<void> => {
  if (ctx.config.chat_debug_logging) throw recordingForced();
  if (!(await readChatSetting(ctx.store, "allow_debug_logging"))) {
    throw forbidden("An administrator must allow this first.");
  }
  await setUserChatSetting(ctx, caller, "debug_logging", isEnabled);
};

/**
 * Sets the percentage of a model's context; null restores the model's default. Rejects with 400, or 404 for an unknown model or threshold.
 */
export const setCompactionThreshold = async (
  ctx: DomainContext,
  { user_id }: UserCaller,
  model: string,
  threshold_percent: number | null,
): Promise<void> => {
  if (threshold_percent !== null && (threshold_percent < 0 || threshold_percent > 100)) {
    throw invalidField("threshold_percent", "must be between 0 and 100");
  }
  const current = (await readCompactionThresholds(ctx.store, user_id)).find(([id]) => id === model);
  const before = current && { threshold_percent: current[1] };
  if (threshold_percent === null && !before) throw notFound();
  if (threshold_percent !== null && !ctx.models.resolve(model)) throw notFound();
  await ctx.store.commit(
    threshold_percent === null
      ? [
          deleteCompactionThreshold(user_id, model),
          writeAuditEntry(ctx, user_id, "compaction_threshold", before, undefined),
        ]
      : [
          upsertCompactionThreshold(user_id, model, threshold_percent),
          writeAuditEntry(ctx, user_id, "compaction_threshold", before, { threshold_percent }),
        ],
  );
};

/** Sets a user's model choice; the caller's access must have been checked. Rejects with 400. */
export const setModelOverride = async (
  { store, clock, models }: DomainContext,
  scope: { readonly organization_id: string; readonly user_id: string; readonly context: OverrideContext },
  { mode, model_config_id, reasoning_effort }: PutModelOverride,
): Promise<void> => {
  const { organization_id, user_id, context } = scope;
  if (mode === "deployment_default" && context === "root") throw invalidField("mode", "is not for root");
  const model = mode === "model" ? requireModel(models, model_config_id) : undefined;
  const effort = mode === "model" ? parseEffort(reasoning_effort) : undefined;
  const after =
    mode === "model" && model
      ? { mode, model_config_id: model, ...(effort ? { reasoning_effort: effort } : {}) }
      : ({ mode } as { mode: Exclude<PutModelOverride["mode"], "model"> });
  const base = { now: clock.now(), organization_id, resource_id: user_id };
  const before = await readModelOverride(store, scope);
  await store.commit([
    upsertModelOverride(scope, after),
    insertAudit({
      ...base,
      action: "write",
      resource_type: "user_chat_settings",
      target: `model_override.${context}`,
      before,
      after,
    }),
  ]);
};

/** Sets an organization's model for sub-chats, titles or compaction. Rejects with 400 or 403. */
export const setOrganizationModel = async (
  { store, clock, models }: DomainContext,
  caller: UserCaller,
  { organization_id, context }: { readonly organization_id: string; readonly context: OrganizationContext },
  { mode, model_config_id, reasoning_effort }: PutOrganizationOverride,
): Promise<void> => {
  if (!canUpdateOrganization(caller, organization_id)) {
    throw forbidden("Only administrators of the organization can do this.");
  }
  const model = mode === "model" ? requireModel(models, model_config_id) : undefined;
  const effort = parseEffort(reasoning_effort);
  const after =
    model === undefined ? { mode } : { mode, model_config_id: model, ...(effort ? { reasoning_effort: effort } : {}) };
  const before = await readOrganizationModel(store, organization_id, context);
  const base = { now: clock.now(), organization_id, resource_id: organization_id };
  await store.commit([
    upsertOrganizationModel(organization_id, context, after),
    insertAudit({
      ...base,
      action: "write",
      resource_type: "chat_settings",
      target: `model_override.${context}`,
      before,
      after,
    }),
  ]);
};

const requireModel = (models: DomainContext["models"], id: string | undefined): string => {
  const model = id ? models.resolve(id.toLowerCase()) : undefined;
  if (!model) throw invalidField("model_config_id", "names no model you can use");
  return model.id;
};

const writeAuditEntry = (
  { clock }: DomainContext,
  user_id: string,
  target: string,
  before: object | undefined,
  after: object | undefined,
): Statement =>
  insertAudit({
    now: clock.now(),
    action: "write",
    resource_type: "user_chat_settings",
    resource_id: user_id,
    target,
    before,
    after,
  });
