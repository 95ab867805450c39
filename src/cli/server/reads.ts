// Serves reads on an inactive node with `cluster_reads = every`: everything that can be read from the database.
import type { Clock } from "#base/clock.ts";
import type { Config } from "#base/config.ts";
import { passToActiveNode } from "#base/network/local-reads.ts";
import type { ClusterNode } from "#db/pg/node.ts";
import type { StandingBy } from "#src/cluster/membership.ts";
import type { SharedCounts } from "#src/cluster/shared-counts.ts";
import { followActiveNode, openReads } from "#src/context/open-reads.ts";
import { startReads } from "#src/server.ts";

type Options = { readonly config: Config; readonly clock: Clock; readonly checkAnswers?: boolean };

/** Serves until disposed. `port` is for local requests. */
export const serveReads = (
  {
    node,
    encryption,
    takeForwardedAddress,
    counts,
  }: Omit<StandingBy, "port" | "node"> & {
    readonly node: Pick<ClusterNode, "openReads">;
    readonly counts?: SharedCounts | undefined;
  },
  { config, clock, ...options }: Options,
): AsyncDisposable & { readonly port: number } => {
  const store = node.openReads(passToActiveNode);
  const ctx = openReads({ config, clock, store, encryption });
  const server = startReads(ctx, { takeForwardedAddress, counts, ask: () => store.refreshVersions(), ...options });
  followActiveNode(store, ctx);
  return {
    port: server.port,
    async [Symbol.asyncDispose]() {
      await server.stop();
      await store.close();
      ctx.clock[Symbol.dispose]();
    },
  };
};
