// Opens the database: the file in the data directory, or a PostgreSQL shared by several nodes.
import type { Clock } from "#base/clock.ts";
import type { Config } from "#base/config.ts";
import { log } from "#base/log.ts";
import type { SharedBlobs } from "#db/blobs.ts";
import { isDamage, NEXT_STEP } from "#db/engine/damage.ts";
import { readImage } from "#db/engine/image.ts";
import { openLocalStore } from "#db/engine/local.ts";
import type { Store } from "#db/engine/store.ts";
import type { JoinOptions, Membership } from "#src/cluster/membership.ts";

export type OpenedStore = {
  readonly store: Store;
  /** Only in a cluster. */
  readonly membership?: Membership | undefined;
  readonly sharedBlobs?: SharedBlobs | undefined;
};

type Options = {
  readonly config: Config;
  readonly clock: Clock;
  readonly fatal: ((error: Error) => void) | undefined;
  /** Already joined. */
  readonly membership?: Membership | undefined;
};

/** Opens and migrates the database. `fatal` is called when data can no longer be written safely and the process must stop. */
export const openStore = async ({ config, clock, fatal, membership }: Options): Promise<OpenedStore> => {
  const stop = (error: Error): void => {
    const advice = isDamage(error) ? `. The database is damaged. ${NEXT_STEP}` : "";
    log("db").fatal(`data can no longer be written safely; stopping${advice}`, { error });
    fatal?.(error);
  };
  if (config.database_url === undefined) {
    const { data_dir: directory, database_cache_mb: cacheMb } = config;
    const image = await readImage(directory);
    return { store: openLocalStore({ directory, cacheMb, now: clock.now(), image, fatal: stop }) };
  }
  // Imported lazily, because a single server does not need it.
  const { makeBucket, openSharedBlobs } = await import("#db/pg/uploads.ts");
  const joined = membership ?? (await join({ config, clock, fatal: stop }));
  const store = joined.node.openStore();
  return { store, membership: joined, sharedBlobs: openSharedBlobs(store, makeBucket(config, clock)) };
};

const join = async (options: JoinOptions): Promise<Membership> =>
  options.config.cluster_active === "every"
    ? (await import("#src/cluster/active.ts")).joinActive(options)
    : (await import("#src/cluster/membership.ts")).joinCluster(options);
