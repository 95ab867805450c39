// A node of a cluster that hands over takes no more connections, while those that are there end in order.
import type { Server } from "bun";
import type { Clock } from "#base/clock.ts";
import { pause } from "#base/retry.ts";
import type { Membership } from "#src/cluster/membership.ts";
import type { Context } from "./context.ts";

/** For what is on its way over connections that are there already, or almost. */
const ON_ITS_WAY_MS = 250;

/**
 * A node that hands over takes no more connections: who comes is passed on to the next one, and waits for it. What comes over connections that are
 * there is still answered, and they end with that. `connections` resolves when the last one is closed. Undefined where there is no next node: then
 * this one says that it stops, as a server without a cluster does.
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
