// Where an IP address is: on the public internet, on this machine or a private network, or where nothing of ours may ever connect. Used by
// everything that calls addresses which people enter. Pure.
import { isIP } from "node:net";
import { NetworkList, NOT_PUBLIC } from "./networks.ts";

/** Networks of one's own, and this machine. */
const PRIVATE = new NetworkList([
  ...["127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "::1/128", "fc00::/7"],
]);
/** A cloud's metadata service stands among private addresses. */
const METADATA = new NetworkList(["fd00:ec2::254/128"]);

/** What kind of place an IP address is; one in the other's notation counts as what it stands for. What is neither public nor private
 * (link-local with the metadata services of clouds, protocol assignments, multicast, reserved) is never reached. */
export const placeOfAddress = (address: string): "public" | "private" | "never" => {
  if (isIP(address) === 0 || METADATA.has(address)) return "never";
  if (PRIVATE.has(address)) return "private";
  return NOT_PUBLIC.has(address) ? "never" : "public";
};
