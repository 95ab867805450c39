// TCP segments (RFC 9293 3.1) with these options: maximum segment size, window scale, selective acknowledgment (RFC 2018), and a custom
// option with which two Slipway peers agree on segments that fill a relay packet. Other implementations skip the custom option, as any
// unknown one. Checksums of received segments are not verified, because WireGuard has authenticated every byte. [TL-22]
import { computeChecksum, IP6_HEADER_BYTES, MAX_PACKET, PROTOCOL, writeHeader } from "./ip6.ts";

export const FLAG = { fin: 1, syn: 2, rst: 4, psh: 8, ack: 16 } as const;
const HEADER_BYTES = 20;
const OPTION = { end: 0, nop: 1, mss: 2, scale: 3, sackPermitted: 4, sack: 5, experiment: 253 } as const;
/** Distinguishes Slipway's use of the experimental option from others (RFC 6994): "SW". */
const EXPERIMENT_ID = 0x5357;
/** Maximum number of blocks in a segment without other options. */
export const MAX_SACK_BLOCKS = 4;

/** A range of received sequence numbers, from `from` to before `to`. */
export type SackBlock = { readonly from: number; readonly to: number };

export interface Segment {
  readonly sourcePort: number;
  readonly targetPort: number;
  readonly seq: number;
  readonly ack: number;
  readonly flags: number;
  /** The raw value, before the window scale is applied. */
  readonly window: number;
  readonly mss: number | undefined;
  readonly scale: number | undefined;
  readonly isSackPermitted: boolean;
  /** In a SYN from another Slipway peer: the maximum segment size of the custom option, above `mss`. */
  readonly largeMss: number | undefined;
  readonly blocks: readonly SackBlock[];
  /** A view of the packet. */
  readonly data: Uint8Array;
}

type Options = Pick<Writable<Segment>, "mss" | "scale" | "isSackPermitted" | "largeMss" | "blocks">;
type Writable<T> = { -readonly [K in keyof T]: T[K] };

const DEFAULT_OPTIONS: Readonly<Options> = {
  mss: undefined,
  scale: undefined,
  isSackPermitted: false,
  largeMss: undefined,
  blocks: [],
};

/** Parses a segment; undefined if it is incomplete. An invalid option ends the parsing of options. */
export const parseSegment = (payload: Uint8Array): Segment | undefined => {
  if (payload.byteLength < HEADER_BYTES) return undefined;
  const headerBytes = ((payload[12] as number) >> 4) * 4;
  if (headerBytes < HEADER_BYTES || headerBytes > payload.byteLength) return undefined;
  const view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength);
  const options = headerBytes === HEADER_BYTES ? DEFAULT_OPTIONS : parseOptions(payload, view, headerBytes);
  return {
    sourcePort: view.getUint16(0),
    targetPort: view.getUint16(2),
    seq: view.getUint32(4),
    ack: view.getUint32(8),
    flags: payload[13] as number,
    window: view.getUint16(14),
    mss: options.mss,
    scale: options.scale,
    isSackPermitted: options.isSackPermitted,
    largeMss: options.largeMss,
    blocks: options.blocks,
    data: payload.subarray(headerBytes),
  };
};

const parseOptions = (payload: Uint8Array, view: DataView, end: number): Readonly<Options> => {
  const found: Options = { ...DEFAULT_OPTIONS };
  for (let at = HEADER_BYTES; at < end; ) {
    const kind = payload[at];
    if (kind === OPTION.end) break;
    if (kind === OPTION.nop) {
      at += 1;
      continue;
    }
    const length = at + 1 < end ? (payload[at + 1] as number) : 0;
    if (length < 2 || at + length > end) break;
    if (kind === OPTION.mss && length === 4) found.mss = view.getUint16(at + 2);
    else if (kind === OPTION.scale && length === 3) found.scale = Math.min(payload[at + 2] as number, 14);
    else if (kind === OPTION.sackPermitted && length === 2) found.isSackPermitted = true;
    else if (kind === OPTION.experiment && length === 6 && view.getUint16(at + 2) === EXPERIMENT_ID)
      found.largeMss = view.getUint16(at + 4);
    else if (kind === OPTION.sack && length % 8 === 2) found.blocks = parseBlocks(view, at + 2, at + length);
    at += length;
  }
  return found;
};

const parseBlocks = (view: DataView, from: number, end: number): SackBlock[] => {
  const blocks: SackBlock[] = [];
  for (let at = from; at < end; at += 8) blocks.push({ from: view.getUint32(at), to: view.getUint32(at + 4) });
  return blocks;
};

export type SocketPair = {
  readonly source: Uint8Array;
  readonly target: Uint8Array;
  readonly sourcePort: number;
  readonly targetPort: number;
};

export type SynOptions = {
  readonly mss: number;
  readonly scale: number | undefined;
  readonly isSackPermitted: boolean;
  readonly largeMss?: number | undefined;
};

export type SegmentOut = {
  readonly seq: number;
  readonly ack: number;
  readonly flags: number;
  /** The raw value; limited to 65,535. */
  readonly window: number;
  /** The options of a SYN. */
  readonly syn?: SynOptions | undefined;
  readonly blocks?: readonly SackBlock[] | undefined;
  readonly data?: Uint8Array | undefined;
};

/** All segments are built in one buffer, because allocating a buffer would be the largest cost of a segment. */
const segmentBuffer = new Uint8Array(MAX_PACKET);
const segmentView = new DataView(segmentBuffer.buffer);
const segmentWords = new Uint16Array(segmentBuffer.buffer, 0, MAX_PACKET >> 1);

/** Encodes a segment as a packet, which is valid until the next call. */
export const encodeSegment = (ends: SocketPair, out: SegmentOut): Uint8Array => {
  const { syn, blocks = [], data } = out;
  const optionBytes = syn
    ? 4 + (syn.scale === undefined ? 0 : 4) + (syn.isSackPermitted ? 4 : 0) + (syn.largeMss === undefined ? 0 : 8)
    : blocks.length && 4 + blocks.length * 8;
  const packet = writeHeader(segmentBuffer, PROTOCOL.tcp, ends, HEADER_BYTES + optionBytes + (data?.byteLength ?? 0));
  const view = segmentView;
  view.setUint16(IP6_HEADER_BYTES, ends.sourcePort);
  view.setUint16(IP6_HEADER_BYTES + 2, ends.targetPort);
  view.setUint32(IP6_HEADER_BYTES + 4, out.seq);
  view.setUint32(IP6_HEADER_BYTES + 8, out.ack);
  packet[IP6_HEADER_BYTES + 12] = ((HEADER_BYTES + optionBytes) / 4) << 4;
  packet[IP6_HEADER_BYTES + 13] = out.flags;
  view.setUint16(IP6_HEADER_BYTES + 14, Math.min(out.window, 0xffff));
  view.setUint32(IP6_HEADER_BYTES + 16, 0);
  if (syn) writeSynOptions(view, syn);
  else if (optionBytes > 0) writeSackOption(view, blocks);
  if (data) packet.set(data, IP6_HEADER_BYTES + HEADER_BYTES + optionBytes);
  view.setUint16(IP6_HEADER_BYTES + 16, computeChecksum(packet, segmentWords));
  return packet;
};

const writeSynOptions = (view: DataView, syn: SynOptions): void => {
  let at = IP6_HEADER_BYTES + HEADER_BYTES;
  view.setUint32(at, (OPTION.mss << 24) | (4 << 16) | syn.mss);
  if (syn.scale !== undefined) {
    at += 4;
    view.setUint32(at, (OPTION.nop << 24) | (OPTION.scale << 16) | (3 << 8) | syn.scale);
  }
  if (syn.isSackPermitted) {
    at += 4;
    view.setUint32(at, (OPTION.nop << 24) | (OPTION.nop << 16) | (OPTION.sackPermitted << 8) | 2);
  }
  if (syn.largeMss === undefined) return;
  view.setUint32(at + 4, (OPTION.nop << 24) | (OPTION.nop << 16) | (OPTION.experiment << 8) | 6);
  view.setUint32(at + 8, EXPERIMENT_ID * 2 ** 16 + syn.largeMss);
};

const writeSackOption = (view: DataView, blocks: readonly SackBlock[]): void => {
  const at = IP6_HEADER_BYTES + HEADER_BYTES;
  view.setUint32(at, (OPTION.nop << 24) | (OPTION.nop << 16) | (OPTION.sack << 8) | (2 + blocks.length * 8));
  for (const [i, { from, to }] of blocks.entries()) {
    view.setUint32(at + 4 + i * 8, from);
    view.setUint32(at + 8 + i * 8, to);
  }
};
