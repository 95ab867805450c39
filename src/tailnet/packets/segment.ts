// TCP segments (RFC 9293 3.1) with the required options: maximum segment size, window scale, selective acknowledgment (RFC 2018), and a
// custom one with which two peers of this code agree on segments that fill a relay packet. Other peers skip it like any unknown option.
// Checksums of received segments are not verified: WireGuard has authenticated every byte. [TL-22]
import { computeChecksum, IP6_HEADER_BYTES, MAX_PACKET, PROTOCOL, writeHeader } from "./ip6.ts";

export const FLAG = { fin: 1, syn: 2, rst: 4, psh: 8, ack: 16 } as const;
const HEADER_BYTES = 20;
const OPTION = { end: 0, nothing: 1, mss: 2, scale: 3, sackPermitted: 4, sack: 5, experiment: 253 } as const;
/** Distinguishes our use of the experimental option from others (RFC 6994): "SW". */
const EXPERIMENT_ID = 0x5357;
/** Maximum number of blocks in one segment, with no other option. */
export const MAX_SACK_BLOCKS = 4;

/** A range of received bytes: from `from` up to, but not including, `to`. */
export type SackBlock = { readonly from: number; readonly to: number };

export interface Segment {
  readonly sourcePort: number;
  readonly targetPort: number;
  readonly seq: number;
  readonly ack: number;
  readonly flags: number;
  /** The raw value, without scale. */
  readonly window: number;
  readonly mss: number | undefined;
  readonly scale: number | undefined;
  readonly mayBlocks: boolean;
  /** In a SYN from a peer of this code: its maximum segment size, above `mss`. */
  readonly large: number | undefined;
  readonly blocks: readonly SackBlock[];
  /** A view of the packet. */
  readonly data: Uint8Array;
}

type Options = Pick<Writable<Segment>, "mss" | "scale" | "mayBlocks" | "large" | "blocks">;
type Writable<T> = { -readonly [K in keyof T]: T[K] };

const DEFAULT_OPTIONS: Readonly<Options> = {
  mss: undefined,
  scale: undefined,
  mayBlocks: false,
  large: undefined,
  blocks: [],
};

/** Returns undefined for an incomplete segment. An invalid option ends the parsing of options. */
export const parseSegment = (payload: Uint8Array): Segment | undefined => {
  if (payload.byteLength < HEADER_BYTES) return undefined;
  const head = ((payload[12] as number) >> 4) * 4;
  if (head < HEADER_BYTES || head > payload.byteLength) return undefined;
  const view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength);
  const options = head === HEADER_BYTES ? DEFAULT_OPTIONS : parseOptions(payload, view, head);
  return {
    sourcePort: view.getUint16(0),
    targetPort: view.getUint16(2),
    seq: view.getUint32(4),
    ack: view.getUint32(8),
    flags: payload[13] as number,
    window: view.getUint16(14),
    mss: options.mss,
    scale: options.scale,
    mayBlocks: options.mayBlocks,
    large: options.large,
    blocks: options.blocks,
    data: payload.subarray(head),
  };
};

const parseOptions = (payload: Uint8Array, view: DataView, end: number): Readonly<Options> => {
  const found: Options = { ...DEFAULT_OPTIONS };
  for (let at = HEADER_BYTES; at < end; ) {
    const kind = payload[at];
    if (kind === OPTION.end) break;
    if (kind === OPTION.nothing) {
      at += 1;
      continue;
    }
    const length = at + 1 < end ? (payload[at + 1] as number) : 0;
    if (length < 2 || at + length > end) break;
    if (kind === OPTION.mss && length === 4) found.mss = view.getUint16(at + 2);
    else if (kind === OPTION.scale && length === 3) found.scale = Math.min(payload[at + 2] as number, 14);
    else if (kind === OPTION.sackPermitted && length === 2) found.mayBlocks = true;
    else if (kind === OPTION.experiment && length === 6 && view.getUint16(at + 2) === EXPERIMENT_ID)
      found.large = view.getUint16(at + 4);
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
  readonly mayBlocks: boolean;
  readonly large?: number | undefined;
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

/** All segments are built in one buffer, since allocating one costs more than all else about a segment. */
const segmentBuffer = new Uint8Array(MAX_PACKET);
const segmentView = new DataView(segmentBuffer.buffer);
const segmentWords = new Uint16Array(segmentBuffer.buffer, 0, MAX_PACKET >> 1);

/** Returns a segment as a packet, which is valid until the next call. */
export const encodeSegment = (ends: SocketPair, out: SegmentOut): Uint8Array => {
  const { syn, blocks = [], data } = out;
  const options = syn
    ? 4 + (syn.scale === undefined ? 0 : 4) + (syn.mayBlocks ? 4 : 0) + (syn.large === undefined ? 0 : 8)
    : blocks.length && 4 + blocks.length * 8;
  const packet = writeHeader(segmentBuffer, PROTOCOL.tcp, ends, HEADER_BYTES + options + (data?.byteLength ?? 0));
  const view = segmentView;
  view.setUint16(IP6_HEADER_BYTES, ends.sourcePort);
  view.setUint16(IP6_HEADER_BYTES + 2, ends.targetPort);
  view.setUint32(IP6_HEADER_BYTES + 4, out.seq);
  view.setUint32(IP6_HEADER_BYTES + 8, out.ack);
  packet[IP6_HEADER_BYTES + 12] = ((HEADER_BYTES + options) / 4) << 4;
  packet[IP6_HEADER_BYTES + 13] = out.flags;
  view.setUint16(IP6_HEADER_BYTES + 14, Math.min(out.window, 0xffff));
  view.setUint32(IP6_HEADER_BYTES + 16, 0);
  if (syn) writeSyn(view, syn);
  else if (options > 0) writeBlocks(view, blocks);
  if (data) packet.set(data, IP6_HEADER_BYTES + HEADER_BYTES + options);
  view.setUint16(IP6_HEADER_BYTES + 16, computeChecksum(packet, segmentWords));
  return packet;
};

const writeSyn = (view: DataView, syn: SynOptions): void => {
  let at = IP6_HEADER_BYTES + HEADER_BYTES;
  view.setUint32(at, (OPTION.mss << 24) | (4 << 16) | syn.mss);
  if (syn.scale !== undefined) {
    at += 4;
    view.setUint32(at, (OPTION.nothing << 24) | (OPTION.scale << 16) | (3 << 8) | syn.scale);
  }
  if (syn.mayBlocks) {
    at += 4;
    view.setUint32(at, (OPTION.nothing << 24) | (OPTION.nothing << 16) | (OPTION.sackPermitted << 8) | 2);
  }
  if (syn.large === undefined) return;
  view.setUint32(at + 4, (OPTION.nothing << 24) | (OPTION.nothing << 16) | (OPTION.experiment << 8) | 6);
  view.setUint32(at + 8, EXPERIMENT_ID * 2 ** 16 + syn.large);
};

const writeBlocks = (view: DataView, blocks: readonly SackBlock[]): void => {
  const at = IP6_HEADER_BYTES + HEADER_BYTES;
  view.setUint32(at, (OPTION.nothing << 24) | (OPTION.nothing << 16) | (OPTION.sack << 8) | (2 + blocks.length * 8));
  for (const [i, { from, to }] of blocks.entries()) {
    view.setUint32(at + 4 + i * 8, from);
    view.setUint32(at + 8 + i * 8, to);
  }
};
