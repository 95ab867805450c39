// The relays of nodes, joined over the links between them (src/domain/tailnet/far-relay.ts).
import type { Clock } from "#base/clock.ts";
import { FarRelay, type RelayWords } from "#domain/tailnet/far-relay.ts";
import type { Relay } from "#src/tailnet/index.ts";
import type { Far } from "./far-actors.ts";

const RELAY = "relay";

export const joinRelays = ({ parts, links }: Far, clock: Clock, relay: Relay): void => {
  const far = new FarRelay({ clock, parts, relay, say: (node, words) => links.call(node, RELAY, words) });
  relay.others = far;
  links.serve(RELAY, async (words, from) => far.hear(from, words as RelayWords));
};
