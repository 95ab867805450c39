// The public interface of src/tailnet; README.md describes each part.
export { formatAddress as addressWords, singleAddress } from "./addresses.ts";
export { keyPair } from "./box.ts";
export { Coordinator, LOST_MS, type OtherCoordinators, type ShownPeer } from "./coordinator.ts";
export { derpMap, derpMapJson, RELAY_ONLY, RELAY_REGION, regionName } from "./derp-map.ts";
export { PacketQueue } from "./packet-queue.ts";
export { addressText, type Ends } from "./packets/ip6.ts";
export type { Datagram } from "./packets/udp.ts";
export { localCoordinator } from "./peer/local-coordinator.ts";
export { LocalLink } from "./peer/local-link.ts";
export { NetworkPeer } from "./peer/network-peer.ts";
export { agentAddressBytes, clientAddress } from "./peer/node.ts";
export { RelayLink } from "./peer/relay-link.ts";
export type { Remote } from "./peer/remote.ts";
export { countResponseBytes, type KnownNode, type Peer, type PeerHolder, type PeerOptions } from "./peer.ts";
export { agentRules, clientRules } from "./peer-rules.ts";
export { Relay } from "./relay.ts";
export type { RelayClient } from "./relay-client.ts";
export type { TcpConnection } from "./tcp/connection.ts";
