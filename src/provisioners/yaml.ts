// Parses untrusted YAML, with limits on size, alias expansion and depth, and reports the line of an error. Bun's parser reports no
// positions, so the line is found by parsing ever shorter prefixes, within a budget.

/** Maximum bytes of a YAML text. */
export const MAX_YAML_BYTES = 512 * 1024;
/** Maximum number of values and characters after aliases are expanded, which bounds the cost of processing the document. */
const MAX_NODES = 100_000;
const MAX_TEXT_CHARS = 4 * 1024 * 1024;
const MAX_DEPTH = 64;
/** Maximum characters parsed again to find the line of an error. */
const SEARCH_BUDGET = 2 * 1024 * 1024;

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

/** An error that takes the parser long to detect is not searched for. */
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

/** Lines before and after a position that are also tried, because a multi-line flow value parses only as a whole. */
const SEARCH_STEPS = 8;

/** Returns the line after the longest prefix that parses. */
const findMistakeLine = (text: string): number => {
  const lines = text.split("\n");
  let validLength = 0;
  let bad = lines.length;
  let budget = SEARCH_BUDGET;
  const tryPrefix = (count: number): boolean => {
    budget -= (text.length * count) / lines.length;
    const found = budget > 0 && canParse(lines, count);
    if (found === "costly") budget = 0;
    return found === true;
  };
  while (bad - validLength > 1 && budget > 0) {
    const middle = (validLength + bad) >> 1;
    const later = listRange(middle, Math.min(bad, middle + SEARCH_STEPS)).find(tryPrefix);
    if (later !== undefined) validLength = later;
    else {
      const before = listRange(Math.max(validLength + 1, middle - SEARCH_STEPS), middle)
        .reverse()
        .find(tryPrefix);
      if (before !== undefined) validLength = before;
      bad = before === undefined ? Math.max(validLength + 1, middle - SEARCH_STEPS) : before + 1;
    }
  }
  return Math.min(validLength + 1, lines.length);
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
