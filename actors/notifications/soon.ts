// What will happen to workspaces on its own, told in time: looked up each minute, told once for each deadline (rule NO-4).
import { rfc3339 } from "#base/clock.ts";
import type { Statement } from "#db/engine/sql.ts";
import type { Store } from "#db/engine/store.ts";
import { notified } from "#db/notifications/notifications.ts";
import { listDeletedSoon, listStoppedSoon } from "#db/notifications/soon.ts";

/** How long before the end it is told. */
export const STOP_MS = 20 * 60_000;
export const DELETE_MS = 24 * 3_600_000;

/** The inserts of what was not told yet. */
export const soonNotices = async (store: Store, now: number): Promise<Statement[]> => {
  const stopping = await store.all(listStoppedSoon({ now, until: now + STOP_MS }));
  const deleted = await store.all(listDeletedSoon({ now, until: now + DELETE_MS }));
  return [
    ...stopping.map(({ id, owner_id, name, deadline }) =>
      notified({
        now,
        user_id: owner_id,
        kind: "workspace_stops_soon",
        targets: [id],
        path: `/workspaces/${id}`,
        values: { workspace: name, time: shown(deadline) },
        dedupe: `stops_soon:${id}:${deadline}`,
      }),
    ),
    ...deleted.map(({ id, owner_id, name, deleting_at }) =>
      notified({
        now,
        user_id: owner_id,
        kind: "workspace_deleted_soon",
        targets: [id],
        path: `/workspaces/${id}`,
        values: { workspace: name, time: shown(deleting_at) },
        dedupe: `deleted_soon:${id}:${deleting_at}`,
      }),
    ),
  ];
};

/** To the minute, with its zone: 2030-01-01 09:30 UTC. */
const shown = (ms: number | null): string =>
  `${rfc3339(ms ?? 0)
    .slice(0, 16)
    .replace("T", " ")} UTC`;
