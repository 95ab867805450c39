// Arithmetic on sequence numbers: 32 bits with wraparound (RFC 9293 3.4).

/** Returns how far `a` is after `b`; negative if it is before. */
export const diff = (a: number, b: number): number => (a - b) | 0;
export const addSeq = (a: number, n: number): number => (a + n) >>> 0;

/** The payload of a network packet: 1280 minus both headers. */
export const MSS = 1220;
/** Maximum segment size between two peers of this code: cost is per packet rather than per byte, and the relay accepts up to 64 KiB. */
export const LARGE_SEGMENT = 16 * 1024;
