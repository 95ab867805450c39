// With SLIPWAY_TEST_NODES=active and SLIPWAY_TEST_DATABASE=postgres, a test's server is three active nodes, each with a third of the
// shards, behind a round-robin proxy.
import { SQL } from "bun";
import { type Clock, systemClock } from "#base/clock.ts";
import type { Config } from "#base/config.ts";
import { SHARD_COUNT } from "#base/shards.ts";
import { serveReads } from "#src/cli/server/reads.ts";
import { joinActive } from "#src/cluster/active.ts";
import type { Membership } from "#src/cluster/membership.ts";
import type { Context, ContextOptions } from "#src/context/context.ts";
import { openContext } from "#src/context/open.ts";
import { startServer } from "#src/server.ts";
import { findFreePort } from "../net/free-port.ts";
import { until } from "../until.ts";
import { startProxy } from "./nodes.ts";

/** True if tests' servers consist of several active nodes. */
export const usesActiveNodes = process.env.SLIPWAY_TEST_NODES === "active";

/** Longer than a busy test can block the process: a node whose lease has expired ends its streams. */
const LEASE_MS = 20_000;

/** `toConfig`: returns a node's settings for the proxy's address. */
export const startActiveNodes = async (
  database: string,
  toConfig: (access: URL) => Config,
  options: Omit<ContextOptions, "config">,
) => {
  const proxy = startProxy();
  const { clock } = options;
  const settings = toConfig(proxy.url);
  const join = async (i: number) => {
    const config = createNodeConfig(settings, { database, i });
    const membership = await joinNode(config, clock ?? systemClock);
    return { membership, open: () => openContext({ ...options, config, membership }) };
  };
  const serve = (context: Context) => startServer(context, { checkAnswers: true });
  const firstNode = await join(0);
  // The first node creates the encryption key that the others check theirs against.
  const firstContext = await firstNode.open();
  const otherNodes = await Promise.all([1, 2].map(join));
  const distributed = distributeShards(database, [firstNode, ...otherNodes]);
  const otherContexts = await Promise.all(otherNodes.map(({ open }) => open()));
  const otherServers = await Promise.all(otherContexts.map(serve));
  // From here on, moving a shard would need a handover.
  await distributed;
  const contexts = [firstContext, ...otherContexts];
  const servers = [await serve(firstContext), ...otherServers];
  proxy.targets.push(...servers.map(({ url }) => Number(url.port)));
  return {
    url: proxy.url,
    contexts,
    async stop() {
      proxy.stop();
      // In parallel, because each shutdown takes a while. Services that other nodes may still call remain until all servers have stopped.
      await Promise.all(servers.map((server) => server.stop("the test is over")));
      await Promise.all(contexts.map((context) => context[Symbol.asyncDispose]()));
    },
  };
};

const createNodeConfig = (base: Config, { database, i }: { database: string; i: number }): Config => {
  const address = { host: "127.0.0.1", port: findFreePort() };
  return {
    ...base,
    address,
    node_address: address,
    database_url: database,
    cluster_active: "every",
    cluster_lease: LEASE_MS,
    data_dir: `${base.data_dir}/node-${i}`,
    encryption_key: "5".repeat(64),
  };
};

const joinNode = (config: Config, clock: Clock): Promise<Membership> => {
  const fatal = (error: Error): void => {
    throw error;
  };
  const openReads = (options: Parameters<NonNullable<Parameters<typeof joinActive>[0]["openReads"]>>[0]) =>
    serveReads(options, { config, clock, checkAnswers: true });
  // No clients remain at the end, so no requests have to be forwarded.
  return joinActive({ config: { ...config, shutdown_timeout: 0 }, clock: systemClock, fatal, openReads });
};

/** Gives each node its share immediately. Otherwise, a shard that has just moved would be inactive for the length of a lease. */
const distributeShards = async (database: string, members: readonly { membership: Membership }[]): Promise<void> => {
  await using sql = new SQL(database, { max: 1 });
  const ids = members.map(({ membership }) => membership.node.id);
  await sql.unsafe(
    `update parts set node = f.node, epoch = f.epoch, given_at = clock_timestamp()
     from fences f where f.node = ($1::text::jsonb ->> (part % ${ids.length})::int)`,
    [JSON.stringify(ids)],
  );
  for (const [i, { membership }] of members.entries())
    await until(() => countShards(membership) === Math.ceil((SHARD_COUNT - i) / members.length), {
      what: "each node to have its share",
    });
};

const countShards = ({ active }: Membership): number =>
  Array.from({ length: SHARD_COUNT }, (_, shard) => active?.shards.has(shard)).filter(Boolean).length;
