// The public interface of src/tailnet; README.md describes each part.
export { formatAddress as addressWords, parseSingleAddress } from "./addresses.ts";
export { createKeyPair } from "./box.ts";
export { Coordinator, LOST_TTL_MS, type PeerSummary, type RemoteCoordinators } from "./coordinator.ts";
export { buildDerpMap, buildDerpMapJson, getRegionName, RELAY_ONLY, RELAY_REGION } from "./derp-map.ts";
export { PacketQueue } from "./packet-queue.ts";
export { type AddressPair, formatIp6 } from "./packets/ip6.ts";
export type { Datagram } from "./packets/udp.ts";
export { createLocalCoordinator } from "./peer/local-coordinator.ts";
export { LocalLink } from "./peer/local-link.ts";
export { NetworkPeer } from "./peer/network-peer.ts";
export { createClientAddress, toAgentAddressBytes } from "./peer/node.ts";
export { RelayLink } from "./peer/relay-link.ts";
export type { Remote } from "./peer/remote.ts";
export { countResponseBytes, type KnownNode, type Peer, type PeerHolder, type PeerOptions } from "./peer.ts";
export { createAgentRules, createClientRules } from "./peer-rules.ts";
export { Relay } from "./relay.ts";
export type { RelayClient } from "./relay-client.ts";
export type { TcpConnection } from "./tcp/connection.ts";
