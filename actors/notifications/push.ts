// Sends one notification to one browser. The address comes from a user, so it is called through the restricted outbound client (rule NO-8).
import type { Clock } from "#base/clock.ts";
import type { Encryption } from "#base/encryption.ts";
import type { Outbound } from "#base/outbound.ts";
import { findChat } from "#db/chats/chats.ts";
import type { Store } from "#db/engine/store.ts";
import type { SubscriptionRow } from "#db/notifications/deliveries.ts";
import type { NotificationRow } from "#db/notifications/notifications.ts";
import { loadVapidKeys } from "#db/notifications/settings.ts";
import { NOTICE_KINDS } from "#schema/notifications/kinds.ts";
import { encryptPush, formatVapidHeader, makeVapidKeys } from "#src/notify/push.ts";
import { toApproval } from "./approval.ts";

const TTL_SECONDS = 86_400;
/** The push service no longer knows the browser. */
const GONE_STATUSES = new Set([404, 410]);

type Deps = {
  readonly store: Store;
  readonly clock: Clock;
  readonly encryption: Encryption;
  readonly outbound: Outbound;
  readonly accessUrl: () => URL;
};

export type PushSubscription = { readonly endpoint: string; readonly auth: string; readonly p256dh: string };

/** Returns the encryption context of a browser's address. */
export const toSealContext = (id: string): string => `webpush:${id}`;

/** Reads what the notification's chat currently waits for. */
const loadQuestion = async (
  store: Store,
  { template_id, targets }: Pick<NotificationRow, "template_id" | "targets">,
): Promise<ReturnType<typeof toApproval>> => {
  const [id] = targets;
  const chat = template_id === NOTICE_KINDS.chat_needs_you.id && id ? await store.get(findChat({ id })) : undefined;
  return chat && toApproval(chat);
};

/** Returns `gone` when the subscription no longer exists. Throws when the push service is unreachable or rejects the message. */
export const pushTo = async (
  { store, clock, encryption, outbound, accessUrl }: Deps,
  { id, sealed }: SubscriptionRow,
  notice: Pick<NotificationRow, "id" | "template_id" | "targets" | "title" | "content" | "icon" | "actions">,
): Promise<"taken" | "gone"> => {
  const { endpoint, auth, p256dh } = JSON.parse(encryption.open(sealed, toSealContext(id))) as PushSubscription;
  const keys = await loadVapidKeys(store, encryption, makeVapidKeys);
  const url = new URL(endpoint);
  const subject = accessUrl().protocol === "https:" ? accessUrl().origin : "mailto:slipway@localhost.invalid";
  const { id: notice_id, title, content, icon, actions } = notice;
  const path = actions[0]?.url ?? "/";
  const requested = await loadQuestion(store, notice);
  const body = (requested?.text ?? content).slice(0, 500);
  const approval = requested?.approval === undefined ? {} : { approval: requested.approval };
  const message = { id: notice_id, title: title.slice(0, 200), body, icon: icon.slice(0, 500), path, ...approval };
  const text = JSON.stringify(message);
  const answer = await outbound.fetch(url, {
    method: "POST",
    headers: {
      authorization: formatVapidHeader(url, keys, subject, clock.now()),
      "content-encoding": "aes128gcm",
      "content-type": "application/octet-stream",
      ttl: String(TTL_SECONDS),
    },
    body: encryptPush(text, { auth, p256dh }),
  });
  if (GONE_STATUSES.has(answer.status)) return "gone";
  if (answer.status < 200 || answer.status > 299) throw new Error(`${url.host} answered ${answer.status}`);
  return "taken";
};
