// Between the protocol's numbers and our words: enums that count from 0 or 1. Refuses numbers nobody knows.
import { invalidField } from "#base/errors.ts";
import { uuidFromBytes } from "#base/ids.ts";

/** The text of an id as the protocol has it. 400 when it has not 16 bytes. */
export const toId = (bytes: Uint8Array, field: string): string => {
  if (bytes.length !== 16) throw invalidField(field, "must be 16 bytes");
  return uuidFromBytes(bytes);
};

/** The word of an enum value; `from` is the number of the first word. 400 for any other number. */
export const toWord = <const W extends readonly string[]>(
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
export const toNumber = (words: readonly string[], word: string, from: number): number =>
  Math.max(0, words.indexOf(word)) + from;
