// Notification settings: the kinds, the delivery methods that administrators and users have chosen, and test notifications.
import { toRfc3339 } from "#base/clock.ts";
import { forbidden, invalidField, notFound } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import { listPreferences, upsertPreference } from "#db/notifications/deliveries.ts";
import { insertNotification } from "#db/notifications/notifications.ts";
import {
  readChosenMethods,
  readNotifierPaused,
  upsertMethods,
  upsertNotifierPaused,
} from "#db/notifications/settings.ts";
import { insertAudit } from "#db/reports/audit/audit.ts";
import { findNoticeKind, NOTICE_KINDS, type NoticeKind } from "#schema/notifications/kinds.ts";
import type { Method, NotificationPreference, NotificationTemplate } from "#schema/notifications/notification.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { canChangeDeployment } from "../access.ts";
import type { DomainContext } from "../context.ts";

type Deps = Pick<DomainContext, "store" | "clock" | "topics">;

const requireOwner = (caller: UserCaller): void => {
  if (!canChangeDeployment(caller)) throw forbidden("Only owners can change notification settings.");
};

const toMethod = ({ mail }: NoticeKind): Method => (mail ? "smtp" : "inbox");

export const listKinds = async ({ store }: Pick<Deps, "store">): Promise<NotificationTemplate[]> => {
  const methods = await readChosenMethods(store);
  return Object.values<NoticeKind>(NOTICE_KINDS).map((kind) => ({
    id: kind.id,
    name: kind.name,
    group: kind.group,
    title_template: kind.title,
    body_template: kind.body,
    method: methods[kind.id] ?? "",
    default_method: toMethod(kind),
    kind: "system",
    enabled_by_default: true,
  }));
};

/** Sets the delivery method of a kind for everyone; an empty one restores the default. Throws 403, 404. */
export const setMethod = async (
  { store, clock }: Deps,
  caller: UserCaller,
  id: string,
  method: Method | "",
): Promise<NotificationTemplate> => {
  requireOwner(caller);
  const kind = findNoticeKind(id.toLowerCase());
  if (!kind) throw notFound();
  const { [kind.id]: before = "", ...others } = await readChosenMethods(store);
  if (before !== method) {
    const entry = insertAudit({
      now: clock.now(),
      action: "write",
      resource_type: "notification_template",
      resource_id: kind.id,
      target: kind.name,
      before: { method: before },
      after: { method },
    });
    await store.commit([upsertMethods(method === "" ? others : { ...others, [kind.id]: method }), entry]);
  }
  const found = (await listKinds({ store })).find((one) => one.id === kind.id);
  if (!found) throw notFound();
  return found;
};

/** Pauses or resumes all deliveries. Rejects with 403 for everyone but owners. */
export const setPaused = async (
  { store, clock, topics }: Deps,
  caller: UserCaller,
  notifier_paused: boolean,
): Promise<void> => {
  requireOwner(caller);
  const before = await readNotifierPaused(store);
  if (before === notifier_paused) return;
  const change = { before: { notifier_paused: before }, after: { notifier_paused } };
  const base = {
    now: clock.now(),
    action: "write",
    resource_type: "notifications_settings",
    target: "notifier",
  } as const;
  await store.commit([upsertNotifierPaused(notifier_paused), insertAudit({ ...base, ...change })]);
  topics.publish("notified", "", {});
};

export const loadPreferences = async (
  { store }: Pick<Deps, "store">,
  user_id: string,
): Promise<NotificationPreference[]> =>
  (await store.all(listPreferences({ user_id }))).map(({ template_id, disabled, updated_at }) => ({
    id: template_id,
    disabled,
    updated_at: toRfc3339(updated_at),
  }));

/** Kinds that are not listed are unchanged. Throws 400 for an unknown kind. */
export const changePreferences = async (
  { store, clock }: Deps,
  user_id: string,
  map: Readonly<Record<string, boolean>>,
): Promise<NotificationPreference[]> => {
  const updated_at = clock.now();
  const writes = Object.entries(map).map(([id, disabled]) => {
    const kind = findNoticeKind(id.toLowerCase());
    if (!kind) throw invalidField("template_disabled_map", `${id.slice(0, 64)} is not a kind of notification`);
    return upsertPreference({ user_id, template_id: kind.id, disabled, updated_at });
  });
  if (writes.length > 0) await store.commit(writes);
  return loadPreferences({ store }, user_id);
};

/** Sends a test notification to the caller only. */
export const sendTest = async ({ store, clock, topics }: Deps, user_id: string): Promise<void> => {
  const notice = { now: clock.now(), user_id, kind: "test", values: {}, path: "/", dedupe: `test:${uuid()}` } as const;
  await store.commit([insertNotification(notice)]);
  topics.publish("notified", "", {});
};
