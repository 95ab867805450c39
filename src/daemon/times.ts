// Conversions for times in the agent protocol.

/** Returns a protobuf Timestamp for milliseconds since 1970. */
export const toTimestamp = (ms: number): { seconds: bigint; nanos: number } => {
  const seconds = Math.floor(ms / 1000);
  return { seconds: BigInt(seconds), nanos: Math.round((ms - seconds * 1000) * 1e6) };
};

/** Returns the milliseconds of a protobuf Duration; 0 if it is missing. */
export const toDurationMs = (duration: { seconds: bigint; nanos: number } | undefined): number =>
  duration === undefined ? 0 : Number(duration.seconds) * 1000 + duration.nanos / 1e6;
