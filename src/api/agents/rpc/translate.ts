// Between the protocol's numbers and our words: enums that count from 0 or 1, times, durations. Refuses numbers nobody knows.
import { type Duration, type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { invalidField } from "#base/errors.ts";

/** The word of an enum value; `from` is the number of the first word. 400 for any other number. */
export const wordOf = <const W extends readonly string[]>(
  words: W,
  value: number,
  from: number,
  field: string,
): W[number] => {
  const word = words[value - from];
  if (word === undefined) throw invalidField(field, `must be one of ${words.join(", ")}`);
  return word;
};

/** The number of a word the store has; the first word's number when the word is unknown. */
export const numberOf = (words: readonly string[], word: string, from: number): number =>
  Math.max(0, words.indexOf(word)) + from;

/** Milliseconds since 1970; undefined when the time is absent or no number of ours. */
export const msOf = (time: Timestamp | undefined): number | undefined => {
  if (!time) return undefined;
  const ms = timestampMs(time);
  return Number.isSafeInteger(ms) ? ms : undefined;
};

/** Whole seconds as a protocol duration. */
export const seconds = (count: number): Pick<Duration, "seconds" | "nanos"> => ({ seconds: BigInt(count), nanos: 0 });

/** A counter as a number; what is larger than a number can hold is cut. */
export const count = (value: bigint): number => Number(BigInt.asIntN(53, value) === value ? value : 0n);
