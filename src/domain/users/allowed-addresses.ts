// The networks from which a key is valid, in CIDR form. Pure.
import { BlockList, isIP } from "node:net";
import { networks as kind } from "#base/config/kinds.ts";
import { invalidField } from "#base/errors.ts";

/** Returns the networks in their stored form. Throws 400 for an invalid one. */
export const parseNetworks = (given: readonly string[]): string[] =>
  given.map((one) => {
    const parsed = /[\s,]/.test(one) ? undefined : kind.parse(one)?.[0];
    if (parsed === undefined) throw invalidField("allowed_addresses", `"${one}" is not ${EXAMPLE}.`);
    return parsed;
  });

const EXAMPLE = "an IP address or a network such as 10.0.0.0/8";

/** Returns whether an address is in one of the networks; without networks, every address is allowed. */
export const isAllowedFrom = (networks: readonly string[], address: string): boolean => {
  if (networks.length === 0) return true;
  const version = isIP(address);
  return version !== 0 && makeBlockList(networks).check(address, version === 6 ? "ipv6" : "ipv4");
};

/** Returns whether all networks of `inner` are inside `outer`. */
export const areWithin = (inner: readonly string[], outer: readonly string[]): boolean =>
  outer.length === 0 ||
  (inner.length > 0 && inner.every((one) => outer.some((network) => containsNetwork(network, ...splitNetwork(one)))));

const containsNetwork = (network: string, base: string, bits: number): boolean =>
  splitNetwork(network)[1] <= bits &&
  isIP(network.split("/")[0] ?? "") === isIP(base) &&
  isAllowedFrom([network], base);

const splitNetwork = (network: string): [base: string, bits: number] => {
  const [base = "", bits] = network.split("/");
  return [base, bits === undefined ? (isIP(base) === 6 ? 128 : 32) : Number(bits)];
};

const makeBlockList = (networks: readonly string[]): BlockList => {
  const list = new BlockList();
  for (const network of networks) {
    const [base, bits] = splitNetwork(network);
    list.addSubnet(base, bits, isIP(base) === 6 ? "ipv6" : "ipv4");
  }
  return list;
};
