// Arithmetic on sequence numbers: 32 bits with wraparound (RFC 9293 3.4).

/** Returns the distance from `b` to `a`; negative if `a` is before `b`. */
export const diff = (a: number, b: number): number => (a - b) | 0;
export const addSeq = (a: number, n: number): number => (a + n) >>> 0;

/** The standard maximum segment size: a packet of 1,280 bytes minus the IPv6 and TCP headers. */
export const MSS = 1220;
/** Maximum segment size between two Slipway peers: the cost is per packet rather than per byte, and the relay accepts up to 64 KiB. */
export const LARGE_SEGMENT = 16 * 1024;
