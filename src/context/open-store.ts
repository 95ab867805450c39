// The database in the data directory.
import type { Clock } from "#base/clock.ts";
import type { Config } from "#base/config.ts";
import { log } from "#base/log.ts";
import { openLocalStore } from "#db/engine/local.ts";
import type { Store } from "#db/engine/store.ts";

/** Opens and migrates the database. `fatal`: the process must stop, since the data can no longer be written safely. */
export const openStore = (config: Config, clock: Clock, fatal: ((error: Error) => void) | undefined): Store =>
  openLocalStore({
    directory: config.data_dir,
    cacheMb: config.database_cache_mb,
    now: clock.now(),
    fatal: (error) => {
      log("db").fatal("the data can no longer be written safely; stopping", { error });
      fatal?.(error);
    },
  });
