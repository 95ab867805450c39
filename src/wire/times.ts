// Converts between the protocol's times, durations and counters and plain numbers.
import { type Duration, type Timestamp, timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";

/** The last time that a Date can represent. */
const MAX_DATE_MS = 8.64e15;

/** Returns milliseconds since 1970; undefined if the time is missing or out of range. */
export const toMs = (time: Timestamp | undefined): number | undefined => {
  if (!time) return undefined;
  const ms = timestampMs(time);
  return Number.isSafeInteger(ms) && Math.abs(ms) <= MAX_DATE_MS ? ms : undefined;
};

/** Converts milliseconds since 1970 to a protocol time. */
export const toTimestamp = (ms: number): Timestamp => timestampFromMs(ms);

/** Converts whole seconds to a protocol duration. */
export const toDuration = (seconds: number): Pick<Duration, "seconds" | "nanos"> => ({
  seconds: BigInt(seconds),
  nanos: 0,
});

/**
 * Converts whole seconds to the form of metadata descriptions, which have the number of seconds in the nanoseconds field (facts/wire 0):
 * official agents multiply the duration by a second.
 */
export const toMetadataDuration = (seconds: number): Pick<Duration, "seconds" | "nanos"> => ({
  seconds: 0n,
  nanos: seconds,
});

/** Converts a duration of a metadata description to milliseconds; 0 if it is missing. */
export const fromMetadataDuration = (duration: Pick<Duration, "seconds" | "nanos"> | undefined): number => {
  if (!duration) return 0;
  // Servers of an earlier version use the seconds field.
  return duration.seconds > 0n ? Number(duration.seconds) * 1000 : duration.nanos * 1000;
};

/** Converts a counter to a number; values out of range become 0. */
export const toCount = (value: bigint): number => Number(BigInt.asIntN(53, value) === value ? value : 0n);
