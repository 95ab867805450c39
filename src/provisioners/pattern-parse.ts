// Parses a regular expression and emits the steps of its automaton, which pattern.ts runs. Supports literals, `.`, classes, \d \w \s and
// their opposites, \b, anchors, groups except lookaround, alternation, and * + ? {m,n} in greedy and lazy form.
import type { Step } from "./pattern-step.ts";

const MAX_STEPS = 5_000;
const MAX_SOURCE_CHARS = 1_000;
const MAX_DEPTH = 50;

type Test = (code: number) => boolean;
type Node =
  | { kind: "test"; test: Test }
  | { kind: "assert"; assert: "start" | "end" | "word" | "not_word" }
  | { kind: "sequence"; parts: Node[] }
  | { kind: "choice"; options: Node[] }
  | { kind: "repeat"; part: Node; min: number; max: number };

const inRange = (from: string, to: string): Test => {
  const low = from.charCodeAt(0);
  const high = to.charCodeAt(0);
  return (code) => code >= low && code <= high;
};
const anyOf =
  (...tests: Test[]): Test =>
  (code) =>
    tests.some((test) => test(code));
const not =
  (test: Test): Test =>
  (code) =>
    !test(code);
const oneOf = (text: string): Test => {
  const codes = new Set(Array.from(text, (char) => char.codePointAt(0)));
  return (code) => codes.has(code);
};

const isDigit = inRange("0", "9");
const isWordCode = anyOf(isDigit, inRange("a", "z"), inRange("A", "Z"), oneOf("_"));
const isSpace = oneOf(" \t\n\r\v\f\u00a0\ufeff\u2028\u2029");
const CLASSES: Record<string, Test> = {
  d: isDigit,
  D: not(isDigit),
  w: isWordCode,
  W: not(isWordCode),
  s: isSpace,
  S: not(isSpace),
};
const isLower = inRange("a", "z");
const isUpper = inRange("A", "Z");
const isAlpha = anyOf(isLower, isUpper);
/** Named classes in a set, as in [[:alpha:]]. */
const NAMED_CLASSES: Record<string, Test> = {
  alpha: isAlpha,
  lower: isLower,
  upper: isUpper,
  digit: isDigit,
  word: isWordCode,
  alnum: anyOf(isAlpha, isDigit),
  ascii: (code) => code < 128,
  blank: oneOf(" \t"),
  cntrl: (code) => code < 32 || code === 127,
  graph: inRange("!", "~"),
  print: inRange(" ", "~"),
  punct: (code) => inRange("!", "~")(code) && !anyOf(isAlpha, isDigit)(code),
  space: oneOf(" \t\n\r\v\f"),
  xdigit: anyOf(isDigit, inRange("a", "f"), inRange("A", "F")),
};
const CONTROLS: Record<string, string> = { n: "\n", r: "\r", t: "\t", f: "\f", v: "\v", 0: "\0" };

export const parsePattern = (source: string): Step[] => {
  if (source.length > MAX_SOURCE_CHARS) throw new SyntaxError(`is longer than ${MAX_SOURCE_CHARS} characters`);
  const node = new Reader(Array.from(source)).parseWhole();
  const steps: Step[] = [];
  emitNode(node, steps);
  push(steps, { op: "match" });
  return steps;
};

class Reader {
  readonly #text: readonly string[];
  #position = 0;
  #depth = 0;

  constructor(text: readonly string[]) {
    this.#text = text;
  }

  parseWhole(): Node {
    const node = this.#parseChoice();
    if (this.#position < this.#text.length) throw new SyntaxError("has a ) without (");
    return node;
  }

  #parseChoice(): Node {
    const options = [this.#parseSequence()];
    while (this.#consume("|")) options.push(this.#parseSequence());
    return options.length === 1 ? (options[0] as Node) : { kind: "choice", options };
  }

  #parseSequence(): Node {
    const parts: Node[] = [];
    for (;;) {
      const char = this.#text[this.#position];
      if (char === undefined || char === "|" || char === ")") return { kind: "sequence", parts };
      parts.push(this.#parseRepeated());
    }
  }

  #parseRepeated(): Node {
    let part = this.#parseAtom();
    const bounds = this.#parseQuantifier();
    if (!bounds) return part;
    if (part.kind === "assert") throw new SyntaxError("repeats something that has no length");
    part = { kind: "repeat", part, ...bounds };
    // A lazy quantifier matches the same texts as a greedy one.
    this.#consume("?");
    if (this.#parseQuantifier()) throw new SyntaxError("has nothing to repeat");
    return part;
  }

  #parseQuantifier(): { min: number; max: number } | undefined {
    if (this.#consume("*")) return { min: 0, max: Number.POSITIVE_INFINITY };
    if (this.#consume("+")) return { min: 1, max: Number.POSITIVE_INFINITY };
    if (this.#consume("?")) return { min: 0, max: 1 };
    const match = /^\{(\d{1,4})(?:(,)(\d{1,4})?)?\}/.exec(
      this.#text.slice(this.#position, this.#position + 12).join(""),
    );
    if (!match) return undefined;
    this.#position += match[0].length;
    const [, minText, comma, maxText = Number.POSITIVE_INFINITY] = match;
    const min = Number(minText);
    const max = comma === undefined ? min : Number(maxText);
    if (max < min) throw new SyntaxError("has numbers out of order in {}");
    return { min, max };
  }

  #parseAtom(): Node {
    const char = this.#text[this.#position++] as string;
    if (char === "(") return this.#parseGroup();
    if (char === "[") return { kind: "test", test: this.#parseSet() };
    if (char === "^") return { kind: "assert", assert: "start" };
    if (char === "$") return { kind: "assert", assert: "end" };
    if (char === ".") return { kind: "test", test: not(oneOf("\n\r\u2028\u2029")) };
    if (char === "\\") return this.#parseEscapedAtom();
    if (char === "*" || char === "+" || char === "?") throw new SyntaxError("has nothing to repeat");
    return { kind: "test", test: oneOf(char) };
  }

  #parseGroup(): Node {
    this.#depth += 1;
    if (this.#depth > MAX_DEPTH) throw new SyntaxError("is nested too deeply");
    if (this.#consume("?")) {
      const ahead = this.#text.slice(this.#position, this.#position + 40).join("");
      const grouping = /^(?::|P?<[A-Za-z]\w*>)/.exec(ahead);
      if (!grouping) throw new SyntaxError("uses (?, which is supported only as (?:...) and (?<name>...)");
      this.#position += grouping[0].length;
    }
    const node = this.#parseChoice();
    if (!this.#consume(")")) throw new SyntaxError("has a ( without )");
    this.#depth -= 1;
    return node;
  }

  #parseEscapedAtom(): Node {
    const char = this.#text[this.#position++];
    if (char === "b") return { kind: "assert", assert: "word" };
    if (char === "B") return { kind: "assert", assert: "not_word" };
    if (char === "A") return { kind: "assert", assert: "start" };
    if (char === "z") return { kind: "assert", assert: "end" };
    return { kind: "test", test: this.#parseEscape(char) };
  }

  #parseEscape(char: string | undefined): Test {
    if (char === undefined) throw new SyntaxError("ends with \\");
    const characterClass = CLASSES[char];
    if (characterClass) return characterClass;
    return oneOf(this.#parseLiteral(char));
  }

  #parseLiteral(char: string): string {
    const control = CONTROLS[char];
    if (control !== undefined) return control;
    if (char === "x" || char === "u") {
      const digits = this.#text.slice(this.#position, this.#position + (char === "x" ? 2 : 4)).join("");
      if (!/^[0-9a-f]+$/i.test(digits)) throw new SyntaxError(`has \\${char} without its hexadecimal digits`);
      this.#position += digits.length;
      return String.fromCodePoint(Number.parseInt(digits, 16));
    }
    if (/[1-9k]/.test(char)) throw new SyntaxError("uses a back-reference, which is not supported");
    if (/[a-zA-Z]/.test(char)) throw new SyntaxError(`uses \\${char}, which is not supported`);
    return char;
  }

  #parseSet(): Test {
    const isNegated = this.#consume("^");
    const tests: Test[] = [];
    for (let first = true; ; first = false) {
      const char = this.#text[this.#position++];
      if (char === undefined) throw new SyntaxError("has a [ without ]");
      if (char === "]" && !first) break;
      if (char === "]") return isNegated ? () => true : () => false;
      const low = this.#parseMember(char);
      if (typeof low !== "string") tests.push(low);
      else if (this.#text[this.#position] === "-" && (this.#text[this.#position + 1] ?? "]") !== "]") {
        this.#position += 1;
        const high = this.#parseMember(this.#text[this.#position++] as string);
        if (typeof high !== "string") throw new SyntaxError("has a range in [] that ends with a class");
        const from = low.codePointAt(0) as number;
        const to = high.codePointAt(0) as number;
        if (to < from) throw new SyntaxError("has a range out of order in []");
        tests.push((code) => code >= from && code <= to);
      } else tests.push(oneOf(low));
    }
    return isNegated ? not(anyOf(...tests)) : anyOf(...tests);
  }

  /** Parses one character of a set, or a class such as \d or [:alpha:]. */
  #parseMember(char: string): string | Test {
    const named =
      char === "[" ? /^:(\^?)([a-z]+):\]/.exec(this.#text.slice(this.#position, this.#position + 14).join("")) : null;
    if (named) {
      const namedClass = NAMED_CLASSES[named[2] ?? ""];
      if (!namedClass) throw new SyntaxError(`uses [:${named[2]}:], which is not a class`);
      this.#position += named[0].length;
      return named[1] === "^" ? not(namedClass) : namedClass;
    }
    if (char !== "\\") return char;
    const next = this.#text[this.#position++];
    if (next === undefined) throw new SyntaxError("ends with \\");
    if (next === "b") return "\b";
    return CLASSES[next] ?? this.#parseLiteral(next);
  }

  #consume(char: string): boolean {
    if (this.#text[this.#position] !== char) return false;
    this.#position += 1;
    return true;
  }
}

const push = (steps: Step[], step: Step): number => {
  if (steps.length >= MAX_STEPS) throw new SyntaxError("is too large when its repetitions are written out");
  return steps.push(step) - 1;
};

const emitNode = (node: Node, steps: Step[]): void => {
  switch (node.kind) {
    case "test":
      push(steps, { op: "char", test: node.test });
      return;
    case "assert":
      push(steps, { op: "assert", kind: node.assert });
      return;
    case "sequence":
      for (const part of node.parts) emitNode(part, steps);
      return;
    case "choice":
      emitChoice(node.options, steps);
      return;
    case "repeat":
      emitRepeat(node, steps);
  }
};

const emitChoice = (options: readonly Node[], steps: Step[]): void => {
  const ends: number[] = [];
  for (const [i, option] of options.entries()) {
    if (i === options.length - 1) {
      emitNode(option, steps);
      break;
    }
    const split = push(steps, { op: "split", first: steps.length + 1, second: 0 });
    emitNode(option, steps);
    ends.push(push(steps, { op: "jump", to: 0 }));
    steps[split] = { op: "split", first: split + 1, second: steps.length };
  }
  for (const end of ends) steps[end] = { op: "jump", to: steps.length };
};

const emitRepeat = (node: Node & { kind: "repeat" }, steps: Step[]): void => {
  const startCount = steps.length;
  for (let i = 0; i < node.min; i++) {
    emitNode(node.part, steps);
    // Repeating an empty expression adds no steps.
    if (steps.length === startCount) return;
  }
  if (node.max === Number.POSITIVE_INFINITY) {
    const split = push(steps, { op: "split", first: steps.length + 1, second: 0 });
    emitNode(node.part, steps);
    push(steps, { op: "jump", to: split });
    steps[split] = { op: "split", first: split + 1, second: steps.length };
    return;
  }
  const splits: number[] = [];
  for (let i = node.min; i < node.max; i++) {
    splits.push(push(steps, { op: "split", first: steps.length + 1, second: 0 }));
    emitNode(node.part, steps);
  }
  for (const split of splits) steps[split] = { op: "split", first: split + 1, second: steps.length };
};
