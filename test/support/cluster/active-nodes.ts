// With SLIPWAY_TEST_NODES=active beside SLIPWAY_TEST_DATABASE=postgres a test's server is three nodes that all work, each with a third of the parts,
// behind a proxy that takes them in turn.
import { SQL } from "bun";
import { systemClock } from "#base/clock.ts";
import type { Config } from "#base/config.ts";
import { PARTS } from "#base/parts.ts";
import { answerReads } from "#src/cli/server/reads.ts";
import { joinActive } from "#src/cluster/active.ts";
import type { Membership } from "#src/cluster/membership.ts";
import type { ContextOptions } from "#src/context/context.ts";
import { openContext } from "#src/context/open.ts";
import { startServer } from "#src/server.ts";
import { ManualClock } from "../manual-clock.ts";
import { freePort } from "../net/free-port.ts";
import { until } from "../until.ts";
import { startProxy } from "./nodes.ts";

/** Whether tests' servers are several nodes that all work. */
export const asActive = process.env.SLIPWAY_TEST_NODES === "active";

const NODES = 3;
const LEASE_MS = 6000;

/** `configOf`: the settings of a node, given where the proxy listens. */
export const startActiveNodes = async (
  database: string,
  configOf: (access: URL) => Config,
  options: Omit<ContextOptions, "config">,
) => {
  const proxy = startProxy();
  const { clock } = options;
  const shared = configOf(proxy.url);
  const members: { membership: Membership; context: Awaited<ReturnType<typeof openContext>> }[] = [];
  for (let i = 0; i < NODES; i++) {
    const address = { host: "127.0.0.1", port: freePort() };
    const config: Config = {
      ...shared,
      address,
      node_address: address,
      database_url: database,
      cluster_active: "every",
      cluster_lease: LEASE_MS,
      data_dir: `${shared.data_dir}/node-${i}`,
      encryption_key: "5".repeat(64),
    };
    const fatal = (error: Error): void => {
      throw error;
    };
    const beside = (as: Parameters<NonNullable<Parameters<typeof joinActive>[0]["beside"]>>[0]) =>
      answerReads(as, { config, clock: clock ?? systemClock, checkAnswers: true });
    const membership = await joinActive({ config, clock: systemClock, fatal, beside });
    // The first one brings the key that the others compare theirs with.
    members.push({ membership, context: await openContext({ ...options, config, membership }) });
  }
  await share(database, members);
  const nodes: { context: (typeof members)[number]["context"]; stop(): Promise<void> }[] = [];
  for (const { context } of members) {
    const server = await startServer(context, { checkAnswers: true });
    proxy.targets.push(Number(server.url.port));
    nodes.push({ context, stop: () => server.stop("the test is over") });
  }
  return {
    url: proxy.url,
    contexts: nodes.map(({ context }) => context),
    async stop() {
      proxy.stop();
      let isOver = false;
      const over = (async () => {
        // The first one last, as it has what the others may still ask for.
        for (const { context, stop } of nodes.reverse()) {
          await stop();
          await context[Symbol.asyncDispose]();
        }
      })().finally(() => {
        isOver = true;
      });
      // An end waits for moments that a clock of the test's own does not bring.
      if (clock instanceof ManualClock)
        await until(() => isOver || void clock.advance(100), { what: "the nodes to end" });
      await over;
    },
  };
};

/** Each node its share at once: by itself a part that has just moved rests for the length of a lease. */
const share = async (database: string, members: readonly { membership: Membership }[]): Promise<void> => {
  await using sql = new SQL(database, { max: 1 });
  for (const [i, { membership }] of members.entries())
    await sql.unsafe(
      `update parts set node = f.node, epoch = f.epoch, given_at = clock_timestamp() from fences f where f.node = $1 and part % ${members.length} = $2`,
      [membership.node.id, i],
    );
  for (const [i, { membership }] of members.entries())
    await until(() => countOf(membership) === Math.ceil((PARTS - i) / members.length), { what: "each its share" });
};

const countOf = ({ active }: Membership): number =>
  Array.from({ length: PARTS }, (_, part) => active?.parts.has(part)).filter(Boolean).length;
