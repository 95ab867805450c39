// Administrators' notification settings, and the server's keys for browsers' push services.
import type { Encryption } from "#base/encryption.ts";
import { findNoticeKind } from "#schema/notifications/kinds.ts";
import type { Method } from "#schema/notifications/notification.ts";
import type { Store } from "../engine/store.ts";
import { findSetting, insertSetting, upsertSetting } from "../settings.ts";

const PAUSED = "notifier_paused";
const METHODS = "notification_methods";
const VAPID = "webpush_vapid";

export const readNotifierPaused = async (store: Pick<Store, "get">): Promise<boolean> =>
  (await store.get(findSetting({ key: PAUSED })))?.value === "true";

export const upsertNotifierPaused = (paused: boolean) => upsertSetting({ key: PAUSED, value: String(paused) });

/** Returns the configured methods by the ID of the kind. */
export const readChosenMethods = async (store: Pick<Store, "get">): Promise<Record<string, Method>> =>
  JSON.parse((await store.get(findSetting({ key: METHODS })))?.value ?? "{}") as Record<string, Method>;

export const upsertMethods = (methods: Readonly<Record<string, Method>>) =>
  upsertSetting({ key: METHODS, value: JSON.stringify(methods) });

/** Returns the delivery method of a kind: as configured, or its default. */
export const readMethods = async (store: Pick<Store, "get">): Promise<(template_id: string) => Method> => {
  const chosen = await readChosenMethods(store);
  return (id) => chosen[id] ?? (findNoticeKind(id)?.mail ? "smtp" : "inbox");
};

type VapidKeys = { readonly public_key: string; readonly private_key: string };

/** Returns the keys. The first call creates them with `make` and stores the private one encrypted. */
export const loadVapidKeys = async (
  store: Store,
  encryption: Encryption,
  make: () => VapidKeys,
): Promise<VapidKeys> => {
  const found = await store.get(findSetting({ key: VAPID }));
  if (found) return JSON.parse(encryption.open(found.value, VAPID)) as VapidKeys;
  const keys = make();
  // Another request may have been first.
  await store
    .commit([insertSetting({ key: VAPID, value: encryption.seal(JSON.stringify(keys), VAPID) })])
    .catch(() => {});
  return loadVapidKeys(store, encryption, make);
};
