// Translates the protocol's enums, which start at 0 or 1, to Slipway's terms and back. Rejects unknown numbers.
import { invalidField } from "#base/errors.ts";
import { uuidFromBytes } from "#base/ids.ts";

/** Returns a protocol ID as text. Rejects with 400 unless it has 16 bytes. */
export const toId = (bytes: Uint8Array, field: string): string => {
  if (bytes.length !== 16) throw invalidField(field, "must be 16 bytes");
  return uuidFromBytes(bytes);
};

/** Returns the term for an enum value; `firstNumber` is the number of the first term. Rejects any other number with 400. */
export const toWord = <const W extends readonly string[]>(
  words: W,
  value: number,
  firstNumber: number,
  field: string,
): W[number] => {
  const word = words[value - firstNumber];
  if (word === undefined) throw invalidField(field, `must be one of ${words.join(", ")}`);
  return word;
};

/** Returns the number of a stored term, or the first number for an unknown one. */
export const toNumber = (words: readonly string[], word: string, firstNumber: number): number =>
  Math.max(0, words.indexOf(word)) + firstNumber;
