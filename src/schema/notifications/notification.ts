// Wire shapes of notifications (facts/wire 5): the inbox, settings, preferences, and push subscriptions.
import { type Static, Type as t } from "@sinclair/typebox";
import { oneOf } from "../one-of.ts";
import { namedObject } from "../shape-names.ts";

export const InboxNotification = namedObject("InboxNotification", {
  id: t.String({ format: "uuid" }),
  user_id: t.String({ format: "uuid" }),
  template_id: t.String({ format: "uuid", description: "Its kind." }),
  targets: t.Array(t.String({ format: "uuid" }), { description: "The subject." }),
  title: t.String(),
  content: t.String(),
  icon: t.String(),
  actions: t.Array(t.Object({ label: t.String(), url: t.String() })),
  read_at: t.Union([t.String({ format: "date-time" }), t.Null()], { description: "Null: unread." }),
  created_at: t.String({ format: "date-time" }),
});
export type InboxNotification = Static<typeof InboxNotification>;

const unread_count = t.Integer({ description: "All unread notifications, regardless of filters." });

export const Inbox = namedObject("Inbox", { notifications: t.Array(InboxNotification), unread_count });
export type Inbox = Static<typeof Inbox>;
export const InboxChange = namedObject("InboxChange", { notification: InboxNotification, unread_count });

/** A message of the inbox stream. */
export const InboxEvent = namedObject("InboxEvent", { notification: t.Optional(InboxNotification), unread_count });

export const READ_STATUSES = ["all", "read", "unread"] as const;
export const ReadMark = namedObject("ReadMark", { is_read: t.Boolean() });

export const METHODS = ["inbox", "smtp"] as const;
export type Method = (typeof METHODS)[number];

export const NotificationTemplate = namedObject("NotificationTemplate", {
  id: t.String({ format: "uuid" }),
  name: t.String(),
  group: t.String(),
  title_template: t.String(),
  body_template: t.String(),
  method: oneOf(["", ...METHODS], "inbox: nowhere else. smtp: by email, too. Empty: as it is by default."),
  default_method: oneOf(METHODS),
  kind: oneOf(["system"]),
  enabled_by_default: t.Boolean(),
});
export type NotificationTemplate = Static<typeof NotificationTemplate>;

export const NotificationSettings = namedObject("NotificationSettings", {
  notifier_paused: t.Boolean({
    description: "Nothing is sent outside of the server; inboxes still receive notifications.",
  }),
});
export const DispatchMethods = namedObject("DispatchMethods", { available: t.Array(t.String()), default: t.String() });

export const NotificationPreference = namedObject("NotificationPreference", {
  id: t.String({ format: "uuid", description: "The kind of notification." }),
  disabled: t.Boolean(),
  updated_at: t.String({ format: "date-time" }),
});
export type NotificationPreference = Static<typeof NotificationPreference>;
export const UpdatePreferences = namedObject("UpdatePreferences", {
  template_disabled_map: t.Record(t.String(), t.Boolean(), { description: "By the id of the kind." }),
});

export const WebpushSubscription = namedObject("WebpushSubscription", {
  endpoint: t.String({
    maxLength: 2_048,
    description: "URL of the browser's push service; https.",
  }),
  auth_key: t.String({ maxLength: 64, description: "base64url." }),
  p256dh_key: t.String({ maxLength: 128, description: "base64url." }),
});
export type WebpushSubscription = Static<typeof WebpushSubscription>;
export const WebpushEndpoint = namedObject("WebpushEndpoint", { endpoint: t.String({ maxLength: 2_048 }) });
