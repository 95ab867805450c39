// Chat settings of administrators and users, stored in the table `settings`. Missing values have defaults.
import type { ChatPermissions } from "#schema/chats/chat-permissions.ts";
import type {
  ModelOverride,
  OrganizationContext,
  OrganizationOverride,
  OverrideContext,
} from "#schema/chats/model-override.ts";
import type { Statement } from "../engine/sql.ts";
import type { Store } from "../engine/store.ts";
import { deleteSetting, findSetting, findSettings, listSettings, upsertSetting } from "../settings.ts";

/** Settings of the deployment (facts/chats 4.15). */
export type ChatSettings = {
  auto_archive_days: number;
  debug_retention_days: number;
  retention_days: number;
  workspace_ttl_ms: number;
  allow_debug_logging: boolean;
  allow_model_overrides: boolean;
  plan_mode_instructions: string;
  system_prompt: { text: string; include_default: boolean };
  /** Default permissions of new chats whose owners have set none; null allows everything. */
  permissions: ChatPermissions | null;
};

export const CHAT_DEFAULTS: Readonly<ChatSettings> = {
  auto_archive_days: 0,
  debug_retention_days: 30,
  retention_days: 30,
  workspace_ttl_ms: 0,
  allow_debug_logging: false,
  allow_model_overrides: false,
  plan_mode_instructions: "",
  system_prompt: { text: "", include_default: true },
  permissions: null,
};

/** Settings of one user. */
export type UserChatSettings = {
  prompt: string;
  debug_logging: boolean;
  /** Default permissions of the user's chats; null to use the deployment's. */
  permissions: ChatPermissions | null;
};

export const USER_CHAT_DEFAULTS: Readonly<UserChatSettings> = {
  prompt: "",
  debug_logging: false,
  permissions: null,
};

export const readChatSetting = async <K extends keyof ChatSettings>(store: Store, name: K): Promise<ChatSettings[K]> =>
  (await readValue<ChatSettings[K]>(store, toKey(name))) ?? CHAT_DEFAULTS[name];

export const upsertChatSetting = <K extends keyof ChatSettings>(name: K, value: ChatSettings[K]): Statement =>
  upsertSetting({ key: toKey(name), value: JSON.stringify(value) });

export const readUserChatSetting = async <K extends keyof UserChatSettings>(
  store: Store,
  user_id: string,
  name: K,
): Promise<UserChatSettings[K]> =>
  (await readValue<UserChatSettings[K]>(store, toKey(name, user_id))) ?? USER_CHAT_DEFAULTS[name];

export const upsertUserChatSetting = <K extends keyof UserChatSettings>(
  user_id: string,
  name: K,
  value: UserChatSettings[K],
): Statement => upsertSetting({ key: toKey(name, user_id), value: JSON.stringify(value) });

/** The settings for a model call in a chat of this user. */
export type CallSettings = Pick<ChatSettings, (typeof CALL_SETTINGS)[number]> &
  Pick<UserChatSettings, (typeof USER_CALL_SETTINGS)[number]>;
const CALL_SETTINGS = ["system_prompt", "plan_mode_instructions", "allow_debug_logging"] as const;
const USER_CALL_SETTINGS = ["prompt", "debug_logging"] as const;

/** Reads all settings for a model call in one query, because every call needs them. */
export const readCallSettings = async (store: Pick<Store, "all">, user_id: string): Promise<CallSettings> => {
  const names = [
    ...CALL_SETTINGS.map((name) => [name, toKey(name)]),
    ...USER_CALL_SETTINGS.map((name) => [name, toKey(name, user_id)]),
  ];
  const keys = JSON.stringify(names.map(([, key]) => key));
  const found = new Map((await store.all(findSettings({ keys }))).map(({ key, value }) => [key, JSON.parse(value)]));
  const setValues = names.flatMap(([name, key = ""]) => (found.has(key) ? [[name, found.get(key)]] : []));
  return { ...CHAT_DEFAULTS, ...USER_CHAT_DEFAULTS, ...Object.fromEntries(setValues) };
};

/** Returns by model ID the percentage of the context above which the user's chats are compacted. */
export const readCompactionThresholds = async (store: Store, user_id: string): Promise<[string, number][]> => {
  const from = toThresholdKey(user_id, "");
  const rows = await store.all(listSettings({ from, to: `${from}~` }));
  return rows.map(({ key, value }) => [key.slice(from.length), JSON.parse(value) as number]);
};

export const upsertCompactionThreshold = (user_id: string, model_id: string, percent: number): Statement =>
  upsertSetting({ key: toThresholdKey(user_id, model_id), value: JSON.stringify(percent) });

export const deleteCompactionThreshold = (user_id: string, model_id: string): Statement =>
  deleteSetting(toThresholdKey(user_id, model_id));

/** Identifies a user's model override in an organization. `context`: the purpose of the model calls. */
export type OverrideScope = {
  readonly organization_id: string;
  readonly user_id: string;
  readonly context: OverrideContext;
};
export type StoredOverride = Omit<ModelOverride, "context">;

export const readModelOverride = (store: Store, scope: OverrideScope): Promise<StoredOverride | undefined> =>
  readValue<StoredOverride>(store, toOverrideKey(scope));

export const upsertModelOverride = (scope: OverrideScope, override: StoredOverride): Statement =>
  upsertSetting({ key: toOverrideKey(scope), value: JSON.stringify(override) });

/** Returns an organization's model for calls with the purpose `context`. */
export const readOrganizationModel = (
  store: Store,
  organization_id: string,
  context: OrganizationContext,
): Promise<Omit<OrganizationOverride, "context"> | undefined> =>
  readValue(store, toOrganizationKey(organization_id, context));

export const upsertOrganizationModel = (
  organization_id: string,
  context: OrganizationContext,
  model: Omit<OrganizationOverride, "context">,
): Statement => upsertSetting({ key: toOrganizationKey(organization_id, context), value: JSON.stringify(model) });

const toOrganizationKey = (organization_id: string, context: OrganizationContext): string =>
  `chats.organization_model.${organization_id}.${context}`;

const toOverrideKey = ({ organization_id, user_id, context }: OverrideScope): string =>
  `chats.model_override.${organization_id}.${user_id}.${context}`;

const toThresholdKey = (user_id: string, model_id: string): string => `chats.compaction.${user_id}.${model_id}`;

const toKey = (name: string, user_id?: string): string =>
  user_id === undefined ? `chats.${name}` : `chats.${name}.${user_id}`;

const readValue = async <T>(store: Store, key: string): Promise<T | undefined> => {
  const row = await store.get(findSetting({ key }));
  return row && (JSON.parse(row.value) as T);
};
