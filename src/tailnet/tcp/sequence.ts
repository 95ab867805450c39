// Sequence numbers: 32 bits that go round (RFC 9293 3.4).

/** How far `a` is behind `b`; negative when it is before. */
export const diff = (a: number, b: number): number => (a - b) | 0;
export const plus = (a: number, n: number): number => (a + n) >>> 0;

/** What fits into a packet of the network: 1280 less both heads. */
export const MSS = 1220;
/** What a segment between two peers of this code may have: a packet costs much, a byte of it little, and the relay takes up to 64 KiB. */
export const LARGE_SEGMENT = 16 * 1024;
