// Notifies owners before a workspace stops or is deleted automatically: checked each minute, sent once per deadline (rule NO-4).
import { toRfc3339 } from "#base/clock.ts";
import type { Statement } from "#db/engine/sql.ts";
import type { Store } from "#db/engine/store.ts";
import { listDeletedSoon, listStoppedSoon } from "#db/notifications/deadlines.ts";
import { insertNotification } from "#db/notifications/notifications.ts";

/** How long before the deadline the notification is sent. */
export const STOP_NOTICE_MS = 20 * 60_000;
export const DELETE_NOTICE_MS = 24 * 3_600_000;

/** Returns the inserts of notifications that were not sent yet. */
export const buildSoonNotices = async (store: Store, now: number): Promise<Statement[]> => {
  const stopping = await store.all(listStoppedSoon({ now, until: now + STOP_NOTICE_MS }));
  const deleted = await store.all(listDeletedSoon({ now, until: now + DELETE_NOTICE_MS }));
  return [
    ...stopping.map(({ id, owner_id, name, deadline }) =>
      insertNotification({
        now,
        user_id: owner_id,
        kind: "workspace_stops_soon",
        targets: [id],
        path: `/workspaces/${id}`,
        values: { workspace: name, time: formatMinute(deadline) },
        dedupe: `stops_soon:${id}:${deadline}`,
      }),
    ),
    ...deleted.map(({ id, owner_id, name, deleting_at }) =>
      insertNotification({
        now,
        user_id: owner_id,
        kind: "workspace_deleted_soon",
        targets: [id],
        path: `/workspaces/${id}`,
        values: { workspace: name, time: formatMinute(deleting_at) },
        dedupe: `deleted_soon:${id}:${deleting_at}`,
      }),
    ),
  ];
};

/** Formats to the minute with time zone: 2030-01-01 09:30 UTC. */
const formatMinute = (ms: number | null): string =>
  `${toRfc3339(ms ?? 0)
    .slice(0, 16)
    .replace("T", " ")} UTC`;
