// Administrators' notification settings, and the server's keys for browsers' push services.
import type { Encryption } from "#base/encryption.ts";
import { findNoticeKind } from "#schema/notifications/kinds.ts";
import type { Method } from "#schema/notifications/notification.ts";
import type { Store } from "../engine/store.ts";
import { findSetting, insertSetting, upsertSetting } from "../settings.ts";

const PAUSED_KEY = "notifier_paused";
const METHODS_KEY = "notification_methods";
const VAPID_KEY = "webpush_vapid";

export const readNotifierPaused = async (store: Pick<Store, "get">): Promise<boolean> =>
  (await store.get(findSetting({ key: PAUSED_KEY })))?.value === "true";

export const upsertNotifierPaused = (paused: boolean) => upsertSetting({ key: PAUSED_KEY, value: String(paused) });

/** Returns the configured methods by the ID of the kind. */
export const readChosenMethods = async (store: Pick<Store, "get">): Promise<Record<string, Method>> =>
  JSON.parse((await store.get(findSetting({ key: METHODS_KEY })))?.value ?? "{}") as Record<string, Method>;

export const upsertMethods = (methods: Readonly<Record<string, Method>>) =>
  upsertSetting({ key: METHODS_KEY, value: JSON.stringify(methods) });

/** Returns the delivery method of a kind: as configured, or its default. */
export const readMethods = async (store: Pick<Store, "get">): Promise<(template_id: string) => Method> => {
  const chosen = await readChosenMethods(store);
  return (id) => chosen[id] ?? (findNoticeKind(id)?.mail ? "smtp" : "inbox");
};

type VapidKeys = { readonly public_key: string; readonly private_key: string };

/** Returns the keys. The first call creates them with `createKeys` and stores them encrypted. */
export const loadVapidKeys = async (
  store: Store,
  encryption: Encryption,
  createKeys: () => VapidKeys,
): Promise<VapidKeys> => {
  const stored = await store.get(findSetting({ key: VAPID_KEY }));
  if (stored) return JSON.parse(encryption.open(stored.value, VAPID_KEY)) as VapidKeys;
  const keys = createKeys();
  // Another request may have stored its keys first.
  await store
    .commit([insertSetting({ key: VAPID_KEY, value: encryption.seal(JSON.stringify(keys), VAPID_KEY) })])
    .catch(() => {});
  return loadVapidKeys(store, encryption, createKeys);
};
