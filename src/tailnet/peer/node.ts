// Converts nodes: the one that a peer sends to the coordinator, and the ones that it receives from other peers (facts/wire 2.3). [TL-27]
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Clock } from "#base/clock.ts";
import { generateBytes } from "#base/ids.ts";
import type { Node, NodeSchema } from "#src/wire/gen/tailnet_pb.ts";
import { listAgentAddresses, parseSingleAddress } from "../addresses.ts";
import { KEY_BYTES } from "../box.ts";
import { RELAY_REGION } from "../derp-map.ts";
import { formatIp6, parseAddress } from "../packets/ip6.ts";

const KEY_PREFIX = new TextEncoder().encode("np");
const DISCO_PREFIX = "discokey:";
/** Maximum number of accepted addresses per peer. */
const MAX_ADDRESSES = 16;
const CLIENT_PREFIX = "fd7a115ca1e0";

export type OwnNode = {
  readonly key: Uint8Array;
  readonly disco: Uint8Array;
  /** 16 bytes each. */
  readonly addresses: readonly Uint8Array[];
};

/** Returns the node for the coordinator. */
export const toNode = (own: OwnNode, clock: Clock): MessageInitShape<typeof NodeSchema> => {
  const prefixes = own.addresses.map((address) => `${formatIp6(address)}/128`);
  const now = clock.now();
  return {
    // A random ID that is not 0 and is within the integer range of all implementations.
    id: 1n + BigInt(new DataView(generateBytes(4).buffer).getUint32(0)),
    asOf: { seconds: BigInt(Math.floor(now / 1_000)), nanos: (now % 1_000) * 1_000_000 },
    key: Buffer.concat([KEY_PREFIX, own.key]),
    disco: DISCO_PREFIX + Buffer.from(own.disco).toString("hex"),
    preferredDerp: RELAY_REGION,
    derpLatency: {},
    addresses: prefixes,
    allowedIps: prefixes,
  };
};

export type KnownPeer = {
  readonly key: Uint8Array;
  readonly disco: Uint8Array | undefined;
  readonly addresses: readonly Uint8Array[];
};

/** Returns the relevant parts of another peer's node; undefined if the peer is unreachable because it has no key or no relay. */
export const toPeer = ({ key, disco, preferredDerp, allowedIps }: Node): KnownPeer | undefined => {
  const isKey = key.byteLength === KEY_PREFIX.byteLength + KEY_BYTES && KEY_PREFIX.every((byte, i) => key[i] === byte);
  if (!isKey || preferredDerp === 0) return undefined;
  const addresses = allowedIps.slice(0, MAX_ADDRESSES).map(parseSingleAddress);
  const hex = /^discokey:([0-9a-f]{64})$/.exec(disco)?.[1];
  return {
    key: key.slice(KEY_PREFIX.byteLength),
    disco: hex === undefined ? undefined : new Uint8Array(Buffer.from(hex, "hex")),
    addresses: addresses.filter((address) => address !== undefined).map(parseBracketed),
  };
};

/** Returns the addresses of an agent, 16 bytes each; the first is the one to dial. */
export const toAgentAddressBytes = (agent_id: string): Uint8Array[] => listAgentAddresses(agent_id).map(parseBracketed);

const parseBracketed = (address: string): Uint8Array => parseAddress(address.replace(/^\[|\]$/g, ""));

/** Returns a unique address for a client. */
export const createClientAddress = (): Uint8Array =>
  new Uint8Array(Buffer.concat([Buffer.from(CLIENT_PREFIX, "hex"), generateBytes(10)]));
