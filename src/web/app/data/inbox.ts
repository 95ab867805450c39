// The user's notifications, live: the newest ones and the unread count. Reloaded after each reconnect.
import { signal } from "@preact/signals";
import type { InboxNotification } from "#schema/notifications/notification.ts";
import { call } from "./api.ts";
import { ListRequests } from "./list-requests.ts";
import { LiveSocket } from "./live-socket.ts";

/** Newest first; undefined until loaded. */
export const notices = signal<readonly InboxNotification[] | undefined>(undefined);
export const unreadCount = signal(0);

const requests = new ListRequests();
let _socket: LiveSocket | undefined;

export const loadNotices = (): Promise<void> =>
  requests.load(
    () => call("GET /notifications/inbox"),
    ({ notifications, unread_count }, isOutdated) => {
      const newer = notices.value?.filter(({ id }) => isOutdated(id)) ?? [];
      notices.value = [...newer, ...notifications.filter(({ id }) => !isOutdated(id))];
      if (newer.length === 0) unreadCount.value = unread_count;
    },
  );

const handleMessage = (text: string): void => {
  const { notification, unread_count } = JSON.parse(text) as {
    notification?: InboxNotification;
    unread_count: number;
  };
  unreadCount.value = unread_count;
  // When notifications were removed or marked read elsewhere, the message carries only the unread count.
  if (notification) {
    notices.value = [notification, ...(notices.value ?? [])].slice(0, 100);
    requests.noteChange(notification.id);
  } else void loadNotices().catch(() => undefined);
};

/** Starts following the inbox. */
export const followInbox = (): void => {
  _socket ??= new LiveSocket({
    address: () => "/api/v2/notifications/inbox/watch",
    onMessage: handleMessage,
    onOpen: () => void loadNotices().catch(() => undefined),
  });
};

/** Loads older notifications; false when there are no more. */
export const loadOlderNotices = async (): Promise<boolean> => {
  const shown = notices.value ?? [];
  const last = shown.at(-1);
  if (!last) return false;
  const { notifications } = await call("GET /notifications/inbox", { query: { starting_before: last.id } });
  notices.value = [...shown, ...notifications];
  return notifications.length > 0;
};

export const markRead = async (notification: string, is_read: boolean): Promise<void> => {
  const answer = await call("PUT /notifications/inbox/:notification/read-status", {
    path: { notification },
    body: { is_read },
  });
  unreadCount.value = answer.unread_count;
  notices.value = notices.value?.map((one) => (one.id === notification ? answer.notification : one));
};

export const markAllRead = async (): Promise<void> => {
  await call("PUT /notifications/inbox/mark-all-as-read");
  await loadNotices();
};
