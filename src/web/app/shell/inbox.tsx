// The inbox: a bell with the unread count, and a panel with notifications.
import { signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import type { InboxNotification } from "#schema/notifications/notification.ts";
import { loadNotices, loadOlderNotices, markAllRead, markRead, notices, unreadCount } from "../data/inbox.ts";
import { Button } from "../parts/button.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { Empty } from "../parts/empty.tsx";
import { Icon } from "../parts/icon.tsx";
import { Skeleton } from "../parts/skeleton.tsx";
import { Time } from "../parts/time.tsx";
import { showError } from "./toasts.tsx";

const isOpen = signal(false);

export const openInbox = (): void => {
  isOpen.value = true;
};
const close = (): void => {
  isOpen.value = false;
};

export const Bell = () => (
  <button type="button" onClick={openInbox} title="Notifications">
    <Icon name="bell" />
    <span class="label">Notifications</span>
    {unreadCount.value > 0 && (
      <span class="count attn">
        {unreadCount.value > 99 ? "99+" : unreadCount.value}
        <span class="vh"> unread</span>
      </span>
    )}
  </button>
);

const Row = ({ notice }: { notice: InboxNotification }) => {
  const { route } = useLocation();
  const { id, title, content, actions, created_at, read_at } = notice;
  const href = actions[0]?.url;
  const isRead = read_at !== null;
  const followLink = (event: MouseEvent): void => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || href === undefined) return;
    event.preventDefault();
    if (!isRead) void markRead(id, true).catch(showError);
    close();
    route(href);
  };
  return (
    <li class={isRead ? "notice" : "notice unread"}>
      <div>
        {href === undefined ? (
          <strong>{title}</strong>
        ) : (
          <a href={href} onClick={followLink}>
            {title}
          </a>
        )}
        <p class="small">{content}</p>
        <Time at={created_at} class="dim small" />
      </div>
      <Button small onPress={() => markRead(id, !isRead)} label={`${isRead ? "Mark unread" : "Mark read"}: ${title}`}>
        {isRead ? "Mark unread" : "Mark read"}
      </Button>
    </li>
  );
};

const InboxDialog = () => {
  const hasAll = useSignal(false);
  useEffect(() => void loadNotices().catch(showError), []);
  const loaded = notices.value;
  const loadOlder = async (): Promise<void> => {
    hasAll.value = !(await loadOlderNotices());
  };
  return (
    <Dialog
      title="Notifications"
      onClose={close}
      class="inbox"
      footer={
        <>
          {unreadCount.value > 0 && <Button onPress={markAllRead}>Mark all read</Button>}
          <Button look="primary" onPress={close}>
            Close
          </Button>
        </>
      }
    >
      <p class="small">
        <a href="/account/notifications" onClick={close}>
          Notification settings
        </a>
      </p>
      {loaded === undefined && <Skeleton lines={4} />}
      {loaded?.length === 0 && (
        <Empty icon="bell" title="No notifications yet">
          <p class="dim">Failures, upcoming stops and requests for your approval appear here.</p>
        </Empty>
      )}
      {loaded && loaded.length > 0 && (
        <ul class="notices" aria-label="Notifications">
          {loaded.map((notice) => (
            <Row key={notice.id} notice={notice} />
          ))}
        </ul>
      )}
      {loaded && loaded.length >= 25 && !hasAll.value && <Button onPress={loadOlder}>Show older</Button>}
    </Dialog>
  );
};

/** Rendered once in the shell. */
export const Inbox = () => (isOpen.value ? <InboxDialog /> : null);
