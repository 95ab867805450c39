// Three nodes and two databases, each in its own network namespace, with connections that are cut in one or both directions; nodes that are
// paused for longer and shorter than their lease; finally, the primary is killed and its standby promoted.
import { findPrimary } from "#db/pg/find-primary.ts";
import { splitHosts } from "#db/pg/hosts.ts";
import { makeNetworks } from "#test/support/cluster/networks.ts";
import { startPair } from "#test/support/cluster/postgres-pair.ts";
import { startCluster } from "#test/support/cluster.ts";
import { needs } from "#test/support/needs.ts";
import { until } from "#test/support/until.ts";
import type { Check, CheckOptions } from "../store/store-crash.ts";
import { type TortureResult, tortureRounds } from "./rounds.ts";
import { type FaultContext, torture } from "./server-cluster.ts";

export const NETWORK_FAULTS = [
  ...["node-database", "database-node", "node-database-both", "node-node", "spare-node", "node-node-both"],
  ...["node-client", "client-node", "standby", "stop-2", "stop-6", "stop-20"],
] as const;
/** Once, and last: the pair has no standby afterwards. The old primary returns next to the new one, and the nodes have to choose. */
const LAST = ["primary", "primary-back", "kill"] as const;
/** Milliseconds for which nothing may be acknowledged without a standby. */
const WITHOUT_MS = 2000;

/** Waits until the nodes miss the standby, and throws if a write is acknowledged in the meantime. */
const waitWithoutStandby = async ({ nodes, active, acknowledged }: FaultContext): Promise<void> => {
  const url = new URL("/readyz", nodes.get(active)?.url);
  const readyz = async () => {
    const answer = await fetch(url, { signal: AbortSignal.timeout(2000) }).catch(() => undefined);
    return (await answer?.json()) as { standby?: string } | undefined;
  };
  await until(async () => (await readyz())?.standby === "missing", { what: "the standby to be missed" });
  const before = acknowledged();
  await Bun.sleep(WITHOUT_MS);
  if (acknowledged() > before) throw new Error(`${acknowledged() - before} writes were acknowledged without a standby`);
};

/** These faults in this order, followed by the loss of the primary. */
export const tortureNetworks = async (faults: readonly string[], seed: number): Promise<TortureResult> => {
  using networks = makeNetworks();
  const [first, second] = [networks.add(), networks.add()];
  const locations = new Map([1, 2, 3].map((n) => [n, networks.add()]));
  const getPlace = (n: number) => {
    const location = locations.get(n);
    if (!location) throw new Error(`no place for node ${n}`);
    return location;
  };
  await using pair = await startPair({ places: [first, second] });
  await using cluster = await startCluster({
    place: getPlace,
    hosts: [...locations.values()].map(({ address }) => address),
    database: { name: "postgres", url: pair.url, cutConnections: async () => {}, remove: async () => {} },
  });
  const end = (): void => networks.heal();
  return await torture<string>(
    {
      cluster,
      truth: async () => (await findPrimary(splitHosts(pair.url))).host,
      async fault(name, seen) {
        const { active, spare } = seen;
        const both = name.endsWith("-both");
        if (name.startsWith("node-database")) networks.cut(getPlace(active), first, { both });
        else if (name === "database-node") networks.cut(first, getPlace(active));
        else if (name.startsWith("node-node")) networks.cut(getPlace(active), getPlace(spare), { both });
        else if (name === "spare-node") networks.cut(getPlace(spare), getPlace(active));
        else if (name === "node-client") networks.cut(getPlace(active), networks.here);
        else if (name === "client-node") networks.cut(networks.here, getPlace(active));
        else if (name === "standby") {
          networks.cut(first, second, { both: true });
          await waitWithoutStandby(seen).finally(end);
        } else if (name === "primary-back") await pair.primary.start();
        else if (name === "primary") {
          pair.primary.kill();
          await pair.standby.promote();
        } else return undefined;
        return { end };
      },
    },
    [...faults, ...LAST],
    seed,
  );
};

const serverNetworks = async (options: CheckOptions): Promise<string> => {
  const summary = await tortureRounds(options, { faults: NETWORK_FAULTS, run: tortureNetworks });
  const count = options.rounds * (NETWORK_FAULTS.length + LAST.length);
  return `${count} faults (ways cut, nodes stopped, standby away, ${options.rounds} primaries killed and back), ${summary}`;
};

export const checks: readonly Check[] =
  needs.postgres.found && needs.root.found ? [{ name: "cluster: cut networks", run: serverNetworks }] : [];
