// Audit targets for settings, models and links, in addition to ./targets.ts. Settings always exist. Their names come from the code, never
// from the request.
import { isUuid } from "#base/ids.ts";
import { findBudget } from "#db/budgets/budgets.ts";
import { personBudgetId } from "#db/budgets/periods.ts";
import { readCompactionThresholds } from "#db/chats/settings.ts";
import { readLimit } from "#db/chats/usage-limits.ts";
import { listModelConfigs, listModelProviders } from "#db/models/models.ts";
import { findLink } from "#db/users/external-auth.ts";
import type { ResourceType } from "#schema/audit.ts";
import { ORGANIZATION_CONTEXTS, OVERRIDE_CONTEXTS } from "#schema/chats/model-override.ts";
import {
  type AuditTarget,
  type FindTarget,
  getPathId,
  group,
  member,
  organization,
  type TargetRequest,
  user,
  writes,
} from "./targets.ts";

/** Returns a target for settings such as `chats/config` or `audit/retention`, which always exist. */
export const settingTarget =
  (resource_type: ResourceType, target: string): FindTarget =>
  async () => ({ resource_type, target });

/** A setting that applies to all chats. */
export const writesSetting = (name: string): AuditTarget => writes(settingTarget("chat_settings", name));

/** A user's own setting. */
const userSettingTarget =
  (target: string): FindTarget =>
  async ({ user_id }) => ({ resource_type: "user_chat_settings", resource_id: user_id, target });

export const writesUserSetting = (name: string): AuditTarget => writes(userSettingTarget(name));

/** A user's model choice in an organization. */
export const memberModel: FindTarget = async (requested) => {
  const found = await member(requested);
  const target = findOverride(requested, OVERRIDE_CONTEXTS);
  return found && target ? { ...found, resource_type: "user_chat_settings", target } : undefined;
};

export const organizationModel: FindTarget = async (requested) => {
  const found = await organization(requested);
  const target = findOverride(requested, ORGANIZATION_CONTEXTS);
  return found && target ? { ...found, resource_type: "chat_settings", target } : undefined;
};

const findOverride = ({ params: { context = "" } }: TargetRequest, contexts: readonly string[]): string | undefined =>
  contexts.includes(context) ? `model_override.${context}` : undefined;

/** A link of the caller: to a provider account, or with the prefix `mcp:` to an MCP server. */
export const linkIn =
  (parameter: "externalauth" | "mcp_server"): FindTarget =>
  async ({ store, params, user_id }) => {
    const provider_id = parameter === "mcp_server" ? `mcp:${getPathId(params, parameter)}` : (params[parameter] ?? "");
    const found = await store.get(findLink({ user_id, provider_id }));
    return found && { resource_type: "external_auth_link", resource_id: user_id, target: found.provider_id };
  };

export const modelProvider: FindTarget = async ({ store, params }) => {
  const id = getPathId(params, "provider");
  const found = (await store.all(listModelProviders())).find((one) => one.id === id);
  return found && { resource_type: "ai_provider", resource_id: id, target: found.display_name || found.provider };
};

export const modelConfig: FindTarget = async ({ store, params }) => {
  const id = getPathId(params, "model_config");
  const found = (await store.all(listModelConfigs())).find((one) => one.id === id);
  return found && { resource_type: "ai_model", resource_id: id, target: found.display_name || found.model };
};

/** The compaction threshold of the caller's chats for an existing model. */
export const newThreshold: FindTarget = async (requested) => {
  const params = { model_config: requested.params.model ?? "" };
  return (await modelConfig({ ...requested, params }))
    ? userSettingTarget("compaction_threshold")(requested)
    : undefined;
};

export const threshold: FindTarget = async (requested) => {
  const model = getPathId(requested.params, "model");
  const thresholds = await readCompactionThresholds(requested.store, requested.user_id);
  return thresholds.some(([id]) => id === model) ? userSettingTarget("compaction_threshold")(requested) : undefined;
};

/** The spend limit of a user. */
export const newUserLimit: FindTarget = async (requested) => {
  const found = await user(requested);
  return found && { ...found, resource_type: "user_chat_settings", target: "usage_limit" };
};

export const userLimit: FindTarget = async (requested) => {
  const found = await newUserLimit(requested);
  return found && (await readLimit(requested.store, "user", found.resource_id ?? "")) !== undefined ? found : undefined;
};

/** The spend limit of each member of a group, or of an organization. */
export const newGroupLimit: FindTarget = async (requested) => {
  const { group: groupParam = "" } = requested.params;
  const found = isUuid(groupParam)
    ? await group(requested)
    : await organization({ ...requested, params: { organization: groupParam } });
  return found && { ...found, resource_type: "chat_settings", target: "usage_limit" };
};

export const groupLimit: FindTarget = async (requested) => {
  const found = await newGroupLimit(requested);
  return found && (await readLimit(requested.store, "group", found.resource_id ?? "")) !== undefined
    ? found
    : undefined;
};

/** A budget that is set and may not exist yet. */
export const newBudget: FindTarget = settingTarget("chat_settings", "budget");

export const budget: FindTarget = async ({ store, params }) => {
  const id = getPathId(params, "budget");
  const found = await store.get(findBudget({ id }));
  return found && { resource_type: "chat_settings", resource_id: id, target: "budget" };
};

/** A raised budget. The ID may be of a user's spend limit, which has the form of a person's budget. */
export const raisedBudget: FindTarget = async (requested) =>
  (requested.params.budget ?? "").startsWith(personBudgetId("")) ? newBudget(requested) : budget(requested);
