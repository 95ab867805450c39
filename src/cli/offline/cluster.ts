// Runs offline operations on a cluster's database while no node is active. Loaded only if `database_url` is set.
import type { Clock } from "#base/clock.ts";
import type { Config } from "#base/config.ts";
import { keyId } from "#base/ids.ts";
import { VERSION } from "#base/version.ts";
import { CommitError, type Store } from "#db/engine/store.ts";
import { UnsafeDatabaseError } from "#db/engine/unsafe.ts";
import { inspectPostgres } from "#db/pg/inspect.ts";
import { ClusterNode } from "#db/pg/node.ts";
import { MachineError } from "./error.ts";

type Options = {
  readonly config: Config;
  readonly clock: Clock;
  readonly mayCreate: boolean;
  fatal(error: Error): void;
};

/** Holds the cluster's lease during `work`, so that no node becomes active. `mayCreate`: whether an empty database may be initialized. */
export const runOnCluster = async (
  url: string,
  { config, clock, mayCreate, fatal }: Options,
  work: (store: Store) => Promise<void>,
): Promise<void> => {
  try {
    await requireIdleCluster(url, mayCreate);
    const id = `offline-${keyId()}`;
    const node = await ClusterNode.join({ url, id, version: VERSION, lease_ms: config.cluster_lease, clock, fatal });
    try {
      await node.whenActive();
      const store = node.openStore();
      await work(store).finally(() => store.close());
    } finally {
      await node.leaveCluster();
    }
  } catch (error) {
    if (error instanceof UnsafeDatabaseError) throw new MachineError(error.message);
    if (error instanceof CommitError && (error.reason === "overloaded" || error.reason === "unreachable"))
      throw new MachineError(error.message);
    throw error;
  }
};

const requireIdleCluster = async (url: string, mayCreate: boolean): Promise<void> => {
  const { schema, newest, view } = await inspectPostgres(url);
  const active = view?.active ?? view?.members[0];
  if (active) {
    throw new MachineError(
      `node ${active.id} is active; stop every node first, or use the web UI or API while it runs`,
    );
  }
  if (schema === 0 && mayCreate) return;
  if (schema === 0) throw new MachineError("this database is empty; start the server once to initialize it");
  if (schema < newest) {
    throw new MachineError("the database is from an older version; start a node to upgrade it");
  }
};
