// Classifies IP addresses: on the public internet, on this machine or a private network, or not allowed. Used by all code that connects
// to addresses entered by people. Pure.
import { isIP } from "node:net";
import { NetworkList, NON_PUBLIC_NETWORKS } from "./networks.ts";

/** Private networks and this machine. */
const PRIVATE_NETWORKS = new NetworkList([
  ...["127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "::1/128", "fc00::/7"],
]);
/** The address of a cloud's metadata service, although it is in a private range. */
const METADATA_NETWORKS = new NetworkList(["fd00:ec2::254/128"]);

/**
 * Returns the class of an IP address; IPv4 in IPv6 notation is treated as IPv4. Addresses that are neither public nor
 * private (link-local with cloud metadata services, protocol assignments, multicast, reserved) are never connected to.
 */
export const classifyAddress = (address: string): "public" | "private" | "never" => {
  if (isIP(address) === 0 || METADATA_NETWORKS.has(address)) return "never";
  if (PRIVATE_NETWORKS.has(address)) return "private";
  return NON_PUBLIC_NETWORKS.has(address) ? "never" : "public";
};
