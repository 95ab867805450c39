// Sequence numbers: 32 bits that go round (RFC 9293 3.4).

/** How far `a` is behind `b`; negative when it is before. */
export const diff = (a: number, b: number): number => (a - b) | 0;
export const plus = (a: number, n: number): number => (a + n) >>> 0;

/** What fits into a packet of the network: 1280 less both heads. */
export const MSS = 1220;
