// Dependencies of the workspace actor.
import type { Clock } from "#base/clock.ts";
import type { Encryption } from "#base/encryption.ts";
import type { Topics } from "#base/topics.ts";
import type { Store } from "#db/engine/store.ts";
import type { Events } from "../runtime/events.ts";
import type { Uses } from "./activity-uses.ts";
import type { AutomaticBuilds, Builds, Snapshots } from "./effects.ts";

export type WorkspaceDeps = {
  readonly store: Store;
  readonly clock: Clock;
  readonly topics: Topics<Events>;
  readonly uses: Uses;
  readonly automatic: AutomaticBuilds;
  /** Decrypts the values of template variables. */
  readonly encryption: Encryption;
  readonly builds: Builds;
  readonly snapshots: Snapshots;
  /** Returns the URL at which the workspace reaches the server. */
  readonly accessUrl: () => URL;
};
