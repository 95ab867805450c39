// Between the protocol's times, durations and counters and plain numbers, for anyone who serves a service.
import { type Duration, type Timestamp, timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";

/** Milliseconds since 1970; undefined when the time is absent or no number of ours. */
export const toMs = (time: Timestamp | undefined): number | undefined => {
  if (!time) return undefined;
  const ms = timestampMs(time);
  return Number.isSafeInteger(ms) ? ms : undefined;
};

/** Milliseconds since 1970 as a protocol time. */
export const toTimestamp = (ms: number): Timestamp => timestampFromMs(ms);

/** Whole seconds as a protocol duration. */
export const seconds = (count: number): Pick<Duration, "seconds" | "nanos"> => ({ seconds: BigInt(count), nanos: 0 });

/**
 * Whole seconds as descriptions of metadata carry them: the number stands in the place of the nanoseconds (facts/wire 0), and genuine
 * agents multiply by a second what they read.
 */
export const metadataSeconds = (count: number): Pick<Duration, "seconds" | "nanos"> => ({ seconds: 0n, nanos: count });

/** The way back, in milliseconds; 0 when none exists. */
export const metadataMs = (duration: Pick<Duration, "seconds" | "nanos"> | undefined): number => {
  if (!duration) return 0;
  // Seconds as seconds: what a server of an earlier version says.
  return duration.seconds > 0n ? Number(duration.seconds) * 1000 : duration.nanos * 1000;
};

/** A counter as a number; what is larger than a number can hold is cut. */
export const count = (value: bigint): number => Number(BigInt.asIntN(53, value) === value ? value : 0n);
