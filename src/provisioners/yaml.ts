// Parses untrusted YAML with limits on size, alias expansion and depth, and reports the line of an error. Bun's parser does not report
// positions, so the line is found by parsing shorter prefixes of the text, with a limit on the effort.

/** Maximum bytes of a YAML text. */
export const MAX_YAML_BYTES = 512 * 1024;
/** Maximum number of values and characters after aliases are expanded. */
const MAX_NODES = 100_000;
const MAX_TEXT_CHARS = 4 * 1024 * 1024;
const MAX_DEPTH = 64;
/** Maximum characters to parse again to find the line of an error. */
const MAX_SEARCH_CHARS = 2 * 1024 * 1024;

export class YamlError extends Error {
  override readonly name = "YamlError";
  readonly line: number;
  constructor(line: number, message: string) {
    super(message);
    this.line = line;
  }
}

/** Returns the document's value. Throws YamlError. */
export const parseYaml = (text: string): unknown => {
  if (text.length > MAX_YAML_BYTES) throw new YamlError(1, `is larger than ${MAX_YAML_BYTES} bytes`);
  let value: unknown;
  try {
    value = Bun.YAML.parse(text);
  } catch (error) {
    throw new YamlError(isCostly(error) ? 1 : findMistakeLine(text), `is not valid YAML: ${formatReason(error)}`);
  }
  checkSize(value);
  return value;
};

/** Returns true for an error that the parser needs a long time to detect, so that finding its line would take too long. */
const isCostly = (error: unknown): boolean =>
  error instanceof RangeError || /excessive aliasing/i.test((error as Error).message);

const formatReason = (error: unknown): string => {
  if (error instanceof RangeError) return "it is nested too deeply";
  const { message } = error as Error;
  return message.replace(/^YAML Parse error: /, "").replace(/^./, (first) => first.toLowerCase());
};

const canParse = (lines: readonly string[], count: number): boolean | "costly" => {
  try {
    Bun.YAML.parse(lines.slice(0, count).join("\n"));
    return true;
  } catch (error) {
    return isCostly(error) && "costly";
  }
};

/** Number of prefixes that are also tried before and after a position, because a multi-line flow value parses only as a whole. */
const SEARCH_STEPS = 8;

/** Returns the line after the longest prefix that parses. */
const findMistakeLine = (text: string): number => {
  const lines = text.split("\n");
  let validCount = 0;
  let invalidCount = lines.length;
  let remainingChars = MAX_SEARCH_CHARS;
  const tryPrefix = (count: number): boolean => {
    remainingChars -= (text.length * count) / lines.length;
    const result = remainingChars > 0 && canParse(lines, count);
    if (result === "costly") remainingChars = 0;
    return result === true;
  };
  while (invalidCount - validCount > 1 && remainingChars > 0) {
    const middle = (validCount + invalidCount) >> 1;
    const longerValid = listRange(middle, Math.min(invalidCount, middle + SEARCH_STEPS)).find(tryPrefix);
    if (longerValid !== undefined) validCount = longerValid;
    else {
      const shortest = Math.max(validCount + 1, middle - SEARCH_STEPS);
      const shorterValid = listRange(shortest, middle).reverse().find(tryPrefix);
      if (shorterValid !== undefined) validCount = shorterValid;
      invalidCount = shorterValid === undefined ? shortest : shorterValid + 1;
    }
  }
  return Math.min(validCount + 1, lines.length);
};

const listRange = (from: number, to: number): number[] =>
  Array.from({ length: Math.max(0, to - from) }, (_, i) => from + i);

const checkSize = (root: unknown): void => {
  let nodes = 0;
  let characters = 0;
  const walk = (value: unknown, depth: number): void => {
    nodes += 1;
    if (depth > MAX_DEPTH) throw new YamlError(1, "is nested too deeply");
    if (typeof value === "string") characters += value.length;
    if (nodes > MAX_NODES || characters > MAX_TEXT_CHARS) throw new YamlError(1, "unfolds to too much data");
    if (typeof value !== "object" || value === null) return;
    for (const [key, inner] of Object.entries(value)) {
      characters += key.length;
      walk(inner, depth + 1);
    }
  };
  walk(root, 0);
};
