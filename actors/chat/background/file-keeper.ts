// Deletes files that no message references once their retention has passed, and then unreferenced bytes (facts/chats 4.16).
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import type { Blobs } from "#db/blobs.ts";
import { deleteOrphansBefore } from "#db/chats/files.ts";
import type { Store } from "#db/engine/store.ts";
import { listHashes } from "#db/templates/files.ts";
import { type Chore, PeriodicChore } from "../../runtime/chore.ts";

const RUN_INTERVAL_MS = 3_600_000;
const DAY_MS = 86_400_000;
const DEFAULT_DAYS = 30;

type Deps = {
  readonly store: Store;
  readonly blobs: Blobs;
  readonly clock: Pick<Clock, "now">;
  /** Days that files without a message are kept; 0 means forever. */
  readonly days?: () => Promise<number>;
};

export const fileKeeper = ({ store, blobs, clock, days = async () => DEFAULT_DAYS }: Deps): Chore =>
  new PeriodicChore({
    clock,
    every_ms: RUN_INTERVAL_MS,
    work: async (now) => {
      const retentionDays = await days();
      if (retentionDays > 0)
        await store.commit([deleteOrphansBefore(now - retentionDays * DAY_MS)], { of: "deployment" });
      await blobs.sweep(async () => new Set((await store.scan(listHashes())).map(({ hash }) => hash)));
    },
    failed: (error) => log("chats").warn("cannot delete unused files: {error}", { error }),
  });
