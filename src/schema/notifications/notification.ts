// Wire shapes of notifications (facts/wire 5): the inbox, settings, preferences, and push subscriptions.
import { type Static, Type as t } from "@sinclair/typebox";
import { iconUrl } from "../fields.ts";
import { oneOf } from "../one-of.ts";
import { namedObject } from "../shape-names.ts";

export const InboxNotification = namedObject("InboxNotification", {
  id: t.String({ format: "uuid" }),
  user_id: t.String({ format: "uuid" }),
  template_id: t.String({ format: "uuid", description: "The ID of the kind of notification." }),
  targets: t.Array(t.String({ format: "uuid" }), {
    description: "The IDs of the resources that the notification is about.",
  }),
  title: t.String(),
  content: t.String({ description: "The text of the notification." }),
  icon: iconUrl,
  actions: t.Array(
    t.Object({
      label: t.String({ description: "The text of the button." }),
      url: t.String({ description: "The link of the button: a path on this server." }),
    }),
    { description: "Buttons that user interfaces show with the notification." },
  ),
  read_at: t.Union([t.String({ format: "date-time" }), t.Null()], {
    description: "When the notification was read; null if it is unread.",
  }),
  created_at: t.String({ format: "date-time" }),
});
export type InboxNotification = Static<typeof InboxNotification>;

const unread_count = t.Integer({ description: "The number of all unread notifications, regardless of filters." });

export const Inbox = namedObject("Inbox", {
  notifications: t.Array(InboxNotification, { description: "The notifications, newest first." }),
  unread_count,
});
export type Inbox = Static<typeof Inbox>;
export const InboxChange = namedObject("InboxChange", { notification: InboxNotification, unread_count });

/** A message of the inbox stream. */
export const InboxEvent = namedObject("InboxEvent", {
  notification: t.Optional({
    ...InboxNotification,
    description: "A new notification; absent if only the number of unread ones changed.",
  }),
  unread_count,
});

export const READ_STATUSES = ["all", "read", "unread"] as const;
export const ReadMark = namedObject("ReadMark", {
  is_read: t.Boolean({ description: "Whether the notification is marked as read or as unread." }),
});

export const METHODS = ["inbox", "smtp"] as const;
export type Method = (typeof METHODS)[number];

export const NotificationTemplate = namedObject("NotificationTemplate", {
  id: t.String({ format: "uuid" }),
  name: t.String(),
  group: t.String({ description: "The heading under which settings list the kind." }),
  title_template: t.String({ description: "The title, with placeholders such as `{workspace}`." }),
  body_template: t.String({ description: "The text, with placeholders such as `{workspace}`." }),
  method: oneOf(
    ["", ...METHODS],
    "How this kind is delivered. `inbox`: only to the inbox. `smtp`: also by email. Empty: the default method.",
  ),
  default_method: oneOf(METHODS, "How this kind is delivered if `method` is empty."),
  kind: oneOf(["system"], "Always `system`."),
  enabled_by_default: t.Boolean({ description: "Always true: users get every kind that they haven't disabled." }),
});
export type NotificationTemplate = Static<typeof NotificationTemplate>;

export const NotificationSettings = namedObject("NotificationSettings", {
  notifier_paused: t.Boolean({
    description: "Whether delivery outside the server is paused. Inboxes still receive notifications.",
  }),
});
export const DispatchMethods = namedObject("DispatchMethods", {
  available: t.Array(t.String(), {
    description:
      "The methods that this server can use: `inbox`, `smtp` if an SMTP server is configured, and `webpush`.",
  }),
  default: t.String({ description: "The method of kinds that have none of their own." }),
});

export const NotificationPreference = namedObject("NotificationPreference", {
  id: t.String({ format: "uuid", description: "The ID of the kind of notification." }),
  disabled: t.Boolean({ description: "Whether the user doesn't get this kind." }),
  updated_at: t.String({ format: "date-time" }),
});
export type NotificationPreference = Static<typeof NotificationPreference>;
export const UpdatePreferences = namedObject("UpdatePreferences", {
  template_disabled_map: t.Record(t.String(), t.Boolean(), {
    description: "Whether each kind of notification is disabled, by the ID of the kind.",
  }),
});

export const WebpushSubscription = namedObject("WebpushSubscription", {
  endpoint: t.String({
    maxLength: 2_048,
    description: "The URL of the browser's push service. Must use https.",
  }),
  auth_key: t.String({ maxLength: 64, description: "The subscription's authentication secret, in base64url." }),
  p256dh_key: t.String({ maxLength: 128, description: "The subscription's public key, in base64url." }),
});
export type WebpushSubscription = Static<typeof WebpushSubscription>;
export const WebpushEndpoint = namedObject("WebpushEndpoint", {
  endpoint: t.String({ maxLength: 2_048, description: "The URL with which the browser subscribed." }),
});
