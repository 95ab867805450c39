// Three nodes and two databases, each in its own network namespace. Connections are cut in one or both directions, nodes are paused for
// longer and shorter than their lease, and finally the primary is killed and its standby promoted.
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
/**
 * The last faults of a run, because the pair has no standby afterwards. The old primary returns next to the new one, and the nodes choose.
 */
const LAST_FAULTS = ["primary", "primary-back", "kill"] as const;
/** How long to check that nothing is acknowledged without a standby. */
const WITHOUT_STANDBY_MS = 2000;

/** Waits until the nodes miss the standby, and throws if a write is acknowledged in the meantime. */
const waitWithoutStandby = async ({ nodes, active, acknowledged }: FaultContext): Promise<void> => {
  const url = new URL("/readyz", nodes.get(active)?.url);
  const fetchReadiness = async () => {
    const response = await fetch(url, { signal: AbortSignal.timeout(2000) }).catch(() => undefined);
    return (await response?.json()) as { standby?: string } | undefined;
  };
  await until(async () => (await fetchReadiness())?.standby === "missing", {
    what: "the node to report that the standby is missing",
  });
  const acknowledgedBefore = acknowledged();
  await Bun.sleep(WITHOUT_STANDBY_MS);
  if (acknowledged() > acknowledgedBefore)
    throw new Error(`${acknowledged() - acknowledgedBefore} writes were acknowledged without a standby`);
};

/** Runs these faults in this order, followed by the loss of the primary. */
export const tortureNetworks = async (faults: readonly string[], seed: number): Promise<TortureResult> => {
  using networks = makeNetworks();
  const [primaryNetwork, standbyNetwork] = [networks.add(), networks.add()];
  const locations = new Map([1, 2, 3].map((n) => [n, networks.add()]));
  const getLocation = (n: number) => {
    const location = locations.get(n);
    if (!location) throw new Error(`no location for node ${n}`);
    return location;
  };
  await using pair = await startPair({ places: [primaryNetwork, standbyNetwork] });
  await using cluster = await startCluster({
    place: getLocation,
    hosts: [...locations.values()].map(({ address }) => address),
    database: { name: "postgres", url: pair.url, cutConnections: async () => {}, remove: async () => {} },
  });
  const healNetworks = (): void => networks.heal();
  return await torture<string>(
    {
      cluster,
      getFinalUrl: async () => (await findPrimary(splitHosts(pair.url))).host,
      async fault(name, context) {
        const { active, spare } = context;
        const isBothWays = name.endsWith("-both");
        if (name.startsWith("node-database")) networks.cut(getLocation(active), primaryNetwork, { both: isBothWays });
        else if (name === "database-node") networks.cut(primaryNetwork, getLocation(active));
        else if (name.startsWith("node-node"))
          networks.cut(getLocation(active), getLocation(spare), { both: isBothWays });
        else if (name === "spare-node") networks.cut(getLocation(spare), getLocation(active));
        else if (name === "node-client") networks.cut(getLocation(active), networks.here);
        else if (name === "client-node") networks.cut(networks.here, getLocation(active));
        else if (name === "standby") {
          networks.cut(primaryNetwork, standbyNetwork, { both: true });
          await waitWithoutStandby(context).finally(healNetworks);
        } else if (name === "primary-back") await pair.primary.start();
        else if (name === "primary") {
          pair.primary.kill();
          await pair.standby.promote();
        } else return undefined;
        return { end: healNetworks };
      },
    },
    [...faults, ...LAST_FAULTS],
    seed,
  );
};

const serverNetworks = async (options: CheckOptions): Promise<string> => {
  const summary = await tortureRounds(options, { faults: NETWORK_FAULTS, run: tortureNetworks });
  const count = options.rounds * (NETWORK_FAULTS.length + LAST_FAULTS.length);
  return `${count} faults (connections cut, nodes paused, standby disconnected, ${options.rounds} primaries killed and restarted), ${summary}`;
};

export const checks: readonly Check[] =
  needs.postgres.found && needs.root.found ? [{ name: "cluster: cut networks", run: serverNetworks }] : [];
