// Sends notifications by email and push. Notifications are stored in the same commit as the event that they describe. The notifier reads
// them from the store, so a notification that was stored before a shutdown is sent after the next start. Runs outside of every mailbox
// with limited concurrency, and
// retries with increasing delays before giving up (rules NO-6 to NO-9).
import type { Clock } from "#base/clock.ts";
import type { Encryption } from "#base/encryption.ts";
import { log } from "#base/log.ts";
import type { Outbound } from "#base/outbound.ts";
import type { Topics } from "#base/topics.ts";
import type { Store } from "#db/engine/store.ts";
import {
  countDeliveries,
  type DeliveryRow,
  deleteDelivery,
  deleteSubscription,
  findSubscription,
  insertDelivery,
  listDueDeliveries,
  listSubscriptions,
  updateDelivery,
} from "#db/notifications/deliveries.ts";
import {
  deleteOldNotifications,
  findNotificationById,
  findOldNotification,
  findTooMany,
  listUndispatched,
  MAX_UNDISPATCHED,
  markDispatched,
  type NotificationRow,
  trimNotifications,
} from "#db/notifications/notifications.ts";
import { readMethods, readNotifierPaused } from "#db/notifications/settings.ts";
import { findUser } from "#db/users/users.ts";
import { NOTICE_KINDS } from "#schema/notifications/kinds.ts";
import type { Mailer } from "#src/notify/mail.ts";
import type { Chore } from "../runtime/chore.ts";
import type { Events } from "../runtime/events.ts";
import { buildSoonNotices } from "./deadline-notices.ts";
import { pushTo } from "./push.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const RETENTION_DAYS = 90;
/** Delays after each failed try. After the last one, the delivery is abandoned. */
const RETRY_DELAYS_MS = [MINUTE_MS, 5 * MINUTE_MS, 30 * MINUTE_MS, 3 * 60 * MINUTE_MS];
/** Maximum waiting deliveries. Further notifications only appear in the inbox. */
const MAX_WAITING = 10_000;
const MAX_CONCURRENT = 4;
/** Chats announce their own inbox changes along with other changes of the chat. */
const CHAT_NOTICES: ReadonlySet<string> = new Set(
  (["chat_needs_you", "chat_done", "chat_failed"] as const).map((name) => NOTICE_KINDS[name].id),
);

export type NotifierDeps = {
  readonly store: Store;
  readonly clock: Clock;
  readonly topics: Topics<Events>;
  readonly encryption: Encryption;
  readonly mailer: Mailer;
  readonly outbound: Outbound;
  readonly accessUrl: () => URL;
  /** Whether this server is the one that sends. Default: yes. */
  readonly isSender?: () => boolean;
};

export class Notifier implements Chore {
  readonly #deps: NotifierDeps;
  #isStopped = false;
  #isRequested = false;
  #lastMinute: number;
  #running: Promise<void> | undefined;

  constructor(deps: NotifierDeps) {
    this.#deps = deps;
    this.#lastMinute = deps.clock.now();
    deps.topics.subscribeAll("notified", () => this.wake());
  }

  /** Checks for new or due deliveries in the background. */
  wake(): void {
    if (this.#isSuspended) return;
    this.#isRequested = true;
    if (this.#running || this.#isStopped) return;
    this.#running = this.#run().finally(() => {
      this.#running = undefined;
      if (this.#isRequested) this.wake();
    });
  }

  /** Called every few seconds. */
  sweep(): void {
    this.wake();
  }

  async whenIdle(): Promise<void> {
    while (this.#running) await this.#running;
  }

  stop(): Promise<void> {
    this.#isStopped = true;
    return this.whenIdle();
  }

  get #isSuspended(): boolean {
    return this.#deps.isSender?.() === false;
  }

  get #shouldContinue(): boolean {
    return !this.#isStopped && !this.#isSuspended;
  }

  async #run(): Promise<void> {
    this.#isRequested = false;
    try {
      const now = this.#deps.clock.now();
      if (now - this.#lastMinute >= MINUTE_MS) {
        this.#lastMinute = now;
        await this.#runEachMinute(now);
      }
      while (this.#shouldContinue && (await this.#dispatch())) {}
      while (this.#shouldContinue && (await this.#deliver())) {}
    } catch (error) {
      log("notifications").warn("cannot send notifications: {error}", { error });
    }
  }

  async #runEachMinute(now: number): Promise<void> {
    const { store } = this.#deps;
    const soon = await buildSoonNotices(store, now);
    if (soon.length > 0) await store.commit(soon, { of: "deployment" });
    const before = now - RETENTION_DAYS * DAY_MS;
    while (this.#shouldContinue && (await store.get(findOldNotification({ before })))) {
      await store.commit([deleteOldNotifications(before)], { of: "deployment" });
    }
  }

  /** Creates the deliveries of the oldest notifications. Returns false when there are no more. */
  async #dispatch(): Promise<boolean> {
    const { store, clock, mailer, topics } = this.#deps;
    const rows = await store.all(listUndispatched());
    if (rows.length === 0) return false;
    const now = clock.now();
    const people = [...new Set(rows.map(({ user_id }) => user_id))];
    const fullInboxes = new Set<string>();
    const checkPerson = async (user_id: string) =>
      (await store.get(findTooMany({ user_id }))) && fullInboxes.add(user_id);
    const [methods, counted] = await Promise.all([
      readMethods(store),
      store.get(countDeliveries()),
      ...people.map(checkPerson),
    ] as const);
    const waiting = counted?.count ?? 0;
    const writes = [];
    let freeCount = MAX_WAITING - waiting;
    for (const row of rows) {
      const base = { notification_id: row.id, user_id: row.user_id, due: now };
      const deliveries = [
        ...(mailer.isSetUp && methods(row.template_id) === "smtp"
          ? [{ ...base, method: "smtp", subscription_id: null } as const]
          : []),
        ...(await store.all(listSubscriptions({ user_id: row.user_id, now }))).map(
          ({ id }) => ({ ...base, method: "webpush", subscription_id: id }) as const,
        ),
      ];
      if (deliveries.length > freeCount)
        log("notifications").warn("too many notifications are waiting; one is shown only in the inbox");
      else writes.push(...deliveries.map(insertDelivery));
      freeCount -= Math.min(freeCount, deliveries.length);
      writes.push(markDispatched({ key: row.key, now }));
    }
    await store.commit([...writes, ...[...fullInboxes].map(trimNotifications)], { of: "deployment" });
    const others = rows.filter(({ template_id }) => !CHAT_NOTICES.has(template_id)).map(({ user_id }) => user_id);
    for (const id of new Set([...fullInboxes, ...others])) topics.publish("inbox", id, {});
    return rows.length === MAX_UNDISPATCHED;
  }

  /** Tries the due deliveries. Returns false when none is due. */
  async #deliver(): Promise<boolean> {
    const due = await this.#deps.store.all(listDueDeliveries({ now: this.#deps.clock.now() }));
    if (due.length > 0 && (await readNotifierPaused(this.#deps.store))) return false;
    for (let i = 0; i < due.length && this.#shouldContinue; i += MAX_CONCURRENT) {
      await Promise.all(due.slice(i, i + MAX_CONCURRENT).map((one) => this.#tryDelivery(one)));
    }
    return due.length > 0;
  }

  async #tryDelivery(delivery: DeliveryRow): Promise<void> {
    const { store, clock } = this.#deps;
    try {
      await this.#send(delivery);
      await store.commit([deleteDelivery(delivery.key)], { of: "deployment" });
    } catch (error) {
      const delay_ms = RETRY_DELAYS_MS[delivery.attempts];
      const { method, attempts } = delivery;
      const reason = error instanceof Error ? error.message : "unknown";
      log("notifications").warn("{method} did not accept a notification: {reason}", { method, reason, attempts });
      const next =
        delay_ms === undefined
          ? deleteDelivery(delivery.key)
          : updateDelivery(delivery.key, { attempts: attempts + 1, due: clock.now() + delay_ms });
      await store.commit([next], { of: "deployment" });
    }
  }

  /** Sends one delivery. Skips notifications that were deleted in the meantime. */
  async #send({ notification_id, user_id, method, subscription_id }: DeliveryRow): Promise<void> {
    const { store, clock } = this.#deps;
    const [notice, user] = [
      await store.get(findNotificationById({ id: notification_id })),
      await store.get(findUser({ id: user_id })),
    ];
    if (!notice || user?.status !== "active") return;
    if (method === "smtp") {
      if (user.email !== "") await this.#mail(notice, user.email);
      return;
    }
    const found = await store.get(findSubscription({ id: subscription_id ?? "" }));
    if (!found || found.session_until <= clock.now()) return;
    const { subscription } = found;
    if ((await pushTo(this.#deps, subscription, notice)) === "gone")
      await store.commit([deleteSubscription(subscription.id)], { of: "deployment" });
  }

  #mail({ id, title, content, actions }: NotificationRow, to: string): Promise<void> {
    const links = actions.map(({ label, url }) => `${label}: ${new URL(url, this.#deps.accessUrl()).href}`);
    return this.#deps.mailer.send({ id, to, subject: title, text: [title, "", content, "", ...links, ""].join("\n") });
  }
}
