// The rules for a peer's requests to the coordinator (facts/wire 2.2, "Authorisation per request"). A violation ends the peer's stream with
// the reason in an error response. [TL-11] [TL-12]
import type { Node } from "#src/wire/gen/tailnet_pb.ts";
import { listAgentAddresses, parseSingleAddress } from "./addresses.ts";

export interface PeerRules {
  /** Returns the reason why this node is not allowed; undefined if it is. */
  refuseNode(node: Node): string | undefined;
  /** Returns the reason why the peer cannot open this tunnel; undefined if it can. */
  refuseTunnel(id: string): Promise<string | undefined>;
  /** True for agents, which tell clients that they are ready. */
  mayBeReady: boolean;
}

/** An agent sends its node with its own addresses, and opens no tunnels. */
export const createAgentRules = (agent_id: string): PeerRules => {
  const own = listAgentAddresses(agent_id);
  return {
    mayBeReady: true,
    refuseNode: (node) => refusePrefixes(node, (address) => own.includes(address)),
    refuseTunnel: async () => "agents cannot open tunnels",
  };
};

/** A client has any single addresses, and opens tunnels that `refuseTunnel` allows. */
export const createClientRules = (refuseTunnel: PeerRules["refuseTunnel"]): PeerRules => ({
  mayBeReady: false,
  refuseNode: (node) => refusePrefixes(node, () => true),
  refuseTunnel,
});

const refusePrefixes = ({ addresses, allowedIps }: Node, isOwn: (address: string) => boolean): string | undefined => {
  for (const prefix of [...addresses, ...allowedIps]) {
    const address = parseSingleAddress(prefix);
    if (address === undefined) return `invalid address bits, expected 128: ${prefix.slice(0, 64)}`;
    if (!isOwn(address)) return `invalid node address: ${prefix.slice(0, 64)}`;
  }
  return undefined;
};
