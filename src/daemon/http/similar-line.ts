// Finds the line that is most similar to a passage that was not found, so that a model can correct its next attempt. The number and length
// of compared lines is limited. Pure.

const MAX_LINES = 20_000;
const MAX_LINE_CHARS = 500;
const MAX_SHOWN_CHARS = 200;
/** Minimum likeness of a line that is returned; less similar lines do not help. */
const MIN_LIKENESS = 0.5;

/** Returns a sentence about the line, with a leading space; empty if no line is similar. */
export const findNearestLine = (text: string, passage: string): string => {
  const lines = text.split(/\r?\n/, MAX_LINES);
  const knownLines = new Set(lines.map((line) => line.trim()));
  const passageLines = passage.split(/\r?\n/).filter((line) => line.trim() !== "");
  const missingLine = passageLines.find((line) => !knownLines.has(line.trim()));
  if (passageLines.length === 0) return "";
  if (missingLine === undefined)
    return " All of its lines are in the file, but not in this order or with this indentation.";
  const pairs = countPairs(missingLine);
  let best = { likeness: 0, index: -1 };
  for (const [index, line] of lines.entries()) {
    const likeness = computeLikeness(pairs, countPairs(line));
    if (likeness > best.likeness) best = { likeness, index };
  }
  if (best.likeness < MIN_LIKENESS) return "";
  return ` The nearest line is ${best.index + 1}: ${JSON.stringify((lines[best.index] ?? "").slice(0, MAX_SHOWN_CHARS))}`;
};

/** Counts pairs of adjacent characters. */
const countPairs = (line: string): Map<string, number> => {
  const plain = line.trim().slice(0, MAX_LINE_CHARS).normalize("NFKC").toLowerCase();
  const pairs = new Map<string, number>();
  for (let index = 0; index + 1 < plain.length; index++) {
    const pair = plain.slice(index, index + 2);
    pairs.set(pair, (pairs.get(pair) ?? 0) + 1);
  }
  return pairs;
};

/** Returns 1 for identical pairs and 0 for none in common. */
const computeLikeness = (one: ReadonlyMap<string, number>, other: ReadonlyMap<string, number>): number => {
  let [common, total] = [0, 0];
  for (const [pair, count] of one) {
    common += Math.min(count, other.get(pair) ?? 0);
    total += count;
  }
  for (const count of other.values()) total += count;
  return total === 0 ? 0 : (2 * common) / total;
};
