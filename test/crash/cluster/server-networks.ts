// Three nodes and two databases, each in a network namespace of its own, between which the way is cut, one way and both; nodes that stand
// still for longer and shorter than their lease; at last the primary is killed and its standby promoted.
import { findPrimary } from "#db/pg/find-primary.ts";
import { hostsOf } from "#db/pg/hosts.ts";
import { makeNetworks } from "#test/support/cluster/networks.ts";
import { startPair } from "#test/support/cluster/postgres-pair.ts";
import { LEASE_MS, startCluster } from "#test/support/cluster.ts";
import { needs } from "#test/support/needs.ts";
import { randomFrom } from "#test/support/random.ts";
import type { Check, CheckOptions } from "../store/store-crash.ts";
import { type Fault, type TortureResult, torture } from "./server-cluster.ts";

export const NETWORK_FAULTS = [
  ...["node-database", "database-node", "node-database-both", "node-node", "node-node-both"],
  ...["stop-2", "stop-6", "stop-20"],
] as const;
/** Once, and last: the pair has no standby afterwards. */
const LAST = "primary";

/** These faults in this order, and the loss of the primary behind them. */
export const tortureNetworks = async (faults: readonly (string | Fault)[], seed: number): Promise<TortureResult> => {
  using networks = makeNetworks();
  const [first, second] = [networks.add(), networks.add()];
  const places = new Map([1, 2, 3].map((n) => [n, networks.add()]));
  const at = (n: number) => {
    const place = places.get(n);
    if (!place) throw new Error(`no place for node ${n}`);
    return place;
  };
  await using pair = await startPair({ places: [first, second] });
  await using cluster = await startCluster({
    place: at,
    database: { name: "postgres", url: pair.url, cutConnections: async () => {}, remove: async () => {} },
  });
  const end = (): void => networks.heal();
  return await torture<string>(
    {
      cluster,
      truth: async () => (await findPrimary(hostsOf(pair.url))).host,
      async fault(name, active, spare) {
        const both = name.endsWith("-both");
        if (name.startsWith("node-database")) networks.cut(at(active), first, { both });
        else if (name === "database-node") networks.cut(first, at(active));
        else if (name.startsWith("node-node")) networks.cut(at(active), at(spare), { both });
        else if (name === LAST) {
          pair.primary.kill();
          await pair.standby.promote();
        } else return undefined;
        return { end };
      },
    },
    [...faults, LAST],
    seed,
  );
};

const serverNetworks = async ({ rounds, seed, log }: CheckOptions): Promise<string> => {
  let [acknowledged, unknown, refused, longest_ms] = [0, 0, 0, 0];
  for (let round = 0; round < rounds; round++) {
    const random = randomFrom(seed + round);
    const order = NETWORK_FAULTS.map((fault) => [random(), fault] as const).sort(([a], [b]) => a - b);
    const faults = order.map(([, fault]) => fault);
    const result = await tortureNetworks(faults, seed + round);
    if (result.wrong.length > 0) throw new Error(`seed ${seed + round}: ${result.wrong.slice(0, 5).join("; ")}`);
    acknowledged += result.acknowledged;
    unknown += result.unknown;
    refused += result.refused;
    longest_ms = Math.max(longest_ms, result.longest_ms);
    log(`round ${round}: ${result.acknowledged} acknowledged, longest pause ${Math.round(result.longest_ms)} ms`);
  }
  const faults = rounds * (NETWORK_FAULTS.length + 1);
  return `${faults} faults (ways cut, nodes stopped for 2 to 20 s, ${rounds} primaries killed) on three nodes and two databases in namespaces, ${acknowledged} writes acknowledged, none lost; ${refused} refused, none there; ${unknown} unknown, none twice; longest pause ${(longest_ms / 1000).toFixed(1)} s with a lease of ${LEASE_MS / 1000} s`;
};

export const checks: readonly Check[] =
  needs.postgres.found && needs.root.found ? [{ name: "cluster: cut networks", run: serverNetworks }] : [];
