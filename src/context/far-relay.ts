// The relays of nodes, joined over the links between them (src/tailnet/far-relay.ts).
import type { Clock } from "#base/clock.ts";
import { FarRelay, type RelayWords } from "#src/tailnet/far-relay.ts";
import type { Relay } from "#src/tailnet/relay.ts";
import type { Far } from "./far-actors.ts";

const RELAY = "relay";

export const joinRelays = ({ parts, links }: Far, clock: Clock, relay: Relay): void => {
  const far = new FarRelay({ clock, parts, relay, say: (node, words) => links.call(node, RELAY, words) });
  relay.beside = far;
  links.serve(RELAY, async (words, from) => far.hear(from, words as RelayWords));
};
