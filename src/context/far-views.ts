// What people are shown of a whole cluster where each node knows its own: the private network, and use that is not written yet.
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { otherNodes } from "#base/parts.ts";
import { within } from "#base/retry.ts";
import type { Network, NetworkView } from "#domain/tailnet/network.ts";
import type { Far } from "./far-actors.ts";

const NETWORK = "network";
const FLUSH = "flush";
/** A node that is slower is left out. */
const ANSWER_MS = 2_000;

type Needs = Pick<Far, "parts" | "links">;

/** What all other nodes answer, in no order; without those that do not. */
const askAll = async ({ parts, links }: Needs, clock: Clock, service: string): Promise<unknown[]> => {
  const answers: unknown[] = [];
  const asked = otherNodes(parts).map(async (node) => {
    try {
      answers.push(await links.call(node, service, {}));
    } catch (error) {
      log("cluster").debug("node {node} does not answer {service}: {error}", { node: node.id, service, error });
    }
  });
  await within(clock, ANSWER_MS, Promise.all(asked));
  return [...answers];
};

/** The private network of all nodes. */
export const shareNetwork = (far: Needs, clock: Clock, network: Network): void => {
  far.links.serve(NETWORK, async () => network.here);
  network.others = async () => (await askAll(far, clock, NETWORK)) as NetworkView[];
};

/** Reports of use count what any node has noted. */
export const shareUse = (far: Needs, clock: Clock, usage: Flushed): void => {
  far.links.serve(FLUSH, () => usage.flush());
  usage.flushOthers = async () => void (await askAll(far, clock, FLUSH));
};

type Flushed = { flush(): Promise<void>; flushOthers: () => Promise<void> };
