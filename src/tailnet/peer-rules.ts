// The rules for a peer's requests to the coordinator (facts/wire 2.2, "Authorisation per request"). A violation ends the peer's stream with
// the reason in an error response. [TL-11] [TL-12]
import type { Node } from "#src/wire/gen/tailnet_pb.ts";
import { listAgentAddresses, parseSingleAddress } from "./addresses.ts";

export interface PeerRules {
  /** Returns the reason why this node is not allowed; undefined if it is allowed. */
  refuseNode(node: Node): string | undefined;
  /** Returns the reason why the peer may not open this tunnel; undefined if it may. */
  refuseTunnel(id: string): Promise<string | undefined>;
  /** Whether the peer may report that it is ready for a handshake, as agents do. */
  canSendReady: boolean;
}

/** Returns the rules for an agent, which may have only its own addresses and open no tunnels. */
export const createAgentRules = (agent_id: string): PeerRules => {
  const own = listAgentAddresses(agent_id);
  return {
    canSendReady: true,
    refuseNode: (node) => refusePrefixes(node, (address) => own.includes(address)),
    refuseTunnel: async () => "agents cannot open tunnels",
  };
};

/** Returns the rules for a client, which may have any single addresses and open the tunnels that `refuseTunnel` allows. */
export const createClientRules = (refuseTunnel: PeerRules["refuseTunnel"]): PeerRules => ({
  canSendReady: false,
  refuseNode: (node) => refusePrefixes(node, () => true),
  refuseTunnel,
});

const refusePrefixes = (
  { addresses, allowedIps }: Node,
  isAllowed: (address: string) => boolean,
): string | undefined => {
  for (const prefix of [...addresses, ...allowedIps]) {
    const address = parseSingleAddress(prefix);
    if (address === undefined) return `invalid address bits, expected 128: ${prefix.slice(0, 64)}`;
    if (!isAllowed(address)) return `invalid node address: ${prefix.slice(0, 64)}`;
  }
  return undefined;
};
