// Maintains the connection log: closes entries whose agent disappeared without closing them, and deletes old entries in slices small enough
// not to delay other writes (rules CG-6, CG-9).
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import {
  deleteOldConnections,
  endOrphanedConnections,
  findOldConnection,
  findOrphanedConnection,
} from "#db/connections/connections.ts";
import { readConnectionRetention } from "#db/connections/settings.ts";
import type { Store } from "#db/engine/store.ts";
import { type Chore, PeriodicChore } from "../runtime/chore.ts";

const RUN_INTERVAL_MS = 60_000;
const DAY_MS = 86_400_000;

type Deps = { readonly store: Store; readonly clock: Pick<Clock, "now"> };

export const connectionUpkeep = ({ store, clock }: Deps): Chore =>
  new PeriodicChore({
    clock,
    every_ms: RUN_INTERVAL_MS,
    work: async (now, isStopped) => {
      await endOrphaned(store, now);
      await deleteOld(store, now, isStopped);
    },
    failed: (error) => log("connections").warn("cannot maintain the connection log: {error}", { error }),
  });

const endOrphaned = async (store: Store, now: number): Promise<void> => {
  if (!(await store.get(findOrphanedConnection()))) return;
  const disconnect_reason = "the workspace's agent disconnected";
  await store.commit([endOrphanedConnections({ disconnect_time: now, disconnect_reason })], { of: "deployment" });
};

const deleteOld = async (store: Store, now: number, isStopped: () => boolean): Promise<void> => {
  const { days } = await readConnectionRetention(store);
  if (days === 0) return;
  const oldest = { before: now - days * DAY_MS };
  while (!isStopped() && (await store.get(findOldConnection(oldest))))
    await store.commit([deleteOldConnections(oldest)], { of: "deployment" });
};
