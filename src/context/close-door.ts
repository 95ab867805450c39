// Stops accepting connections when a cluster node hands over, while existing ones end in order.
import type { Server } from "bun";
import type { Clock } from "#base/clock.ts";
import { pause } from "#base/retry.ts";
import type { Membership } from "#src/cluster/membership.ts";
import type { Context } from "./context.ts";

/** Grace period for requests on existing or nearly established connections. */
const ON_ITS_WAY_MS = 250;

/**
 * Stops accepting connections: new ones are forwarded to the next node and wait for it. Requests on existing connections are still
 * answered, after which the connections end. `connections` resolves when the last one is closed. Returns undefined if there is no next
 * node; this one then reports that it is stopping, like a server without a cluster.
 */
export const closeDoor = async (
  server: Server<never>,
  ctx: Context,
  { clock, standAside }: Membership,
): Promise<{ clock: Clock; connections: Promise<void> } | undefined> => {
  ctx.handingOver = true;
  ctx.handingOver = await standAside(server.port as number, ctx.encryption);
  if (!ctx.handingOver) return undefined;
  await pause(clock, ON_ITS_WAY_MS);
  return { clock, connections: server.stop() };
};
