// Regular expressions written by template authors and matched against every user's input. JavaScript's engine backtracks, so a
// harmless-looking pattern can hang the server. Patterns are therefore compiled to an automaton that reads each character once. Features
// that need backtracking (lookaround, backreferences) are rejected, as in RE2 (rule TP-12).

import { parsePattern } from "./pattern-parse.ts";
import type { Step } from "./pattern-step.ts";

export type Pattern = {
  /**
   * True when the pattern is found anywhere in the text (anchors are the pattern's own business). Time: length of text times steps; undefined
   * where that is more than may be spent.
   */
  test(text: string): boolean | undefined;
};

/** Steps of automata that one request may take: about 50 ms, which everyone else waits for. */
const MAX_EFFORT = 1_500_000;

type Effort = { left: number };

/** What is left for all patterns that are looked at now; undefined outside of `sharingEffort`. Nothing in it waits, so it is one request's. */
let shared: Effort | undefined;

/** Runs `work`, all patterns of which together take no more than a single one may. */
export const sharingEffort = <T>(work: () => T): T => {
  if (shared) return work();
  shared = { left: MAX_EFFORT };
  try {
    return work();
  } finally {
    shared = undefined;
  }
};

const isWord = (code: number | undefined): boolean =>
  code !== undefined &&
  ((code >= 48 && code <= 57) || (code >= 65 && code <= 90) || (code >= 97 && code <= 122) || code === 95);

/** Steps in the time of which one is written. */
const PER_WRITTEN = 3;

/** Throws a SyntaxError that says what is wrong or not supported. */
export const compilePattern = (source: string): Pattern => {
  const steps = parsePattern(source);
  // Written out again for each value.
  if (shared) shared.left -= steps.length * PER_WRITTEN;
  return {
    test: (text) =>
      run(
        steps,
        Array.from(text, (char) => char.codePointAt(0) as number),
      ),
  };
};

/** Like compilePattern(), but returns undefined for a pattern that only Go's engine, which Terraform uses, can parse. */
export const tryCompilePattern = (source: string): Pattern | undefined => {
  try {
    return compilePattern(source);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
};

/** Whether a value fits a pattern, if it can be read here; undefined where that takes more than may be spent. */
export const fitsPattern = (source: string, value: string): boolean | undefined => {
  if (shared && shared.left < 0) return undefined;
  const pattern = tryCompilePattern(source);
  return pattern === undefined || pattern.test(value);
};

const run = (steps: readonly Step[], text: readonly number[]): boolean | undefined => {
  const effort = shared ?? { left: MAX_EFFORT };
  const way: Way = { steps, text, effort };
  let current = new Threads(steps.length);
  let next = new Threads(steps.length);
  for (let at = 0; at <= text.length; at++) {
    effort.left -= steps.length / PER_CLEARED + 1;
    if (effort.left < 0) return undefined;
    // A match may begin at every place.
    if (follow(way, 0, at, current)) return true;
    const code = text[at];
    if (code === undefined) return false;
    for (const pc of current.list) {
      const step = steps[pc] as Step;
      if (step.op === "char" && step.test(code) && follow(way, pc + 1, at + 1, next)) return true;
    }
    [current, next] = [next, current];
    next.clear();
  }
  return false;
};

/** Steps whose marks are cleared in the time that one is taken. */
const PER_CLEARED = 64;

/** The places the automaton is at, each once. */
class Threads {
  readonly seen: Uint8Array;
  list: number[] = [];
  constructor(size: number) {
    this.seen = new Uint8Array(size);
  }
  clear(): void {
    this.list = [];
    this.seen.fill(0);
  }
}

type Way = { readonly steps: readonly Step[]; readonly text: readonly number[]; readonly effort: Effort };

/** Adds `start` and all that is reached from it without a character; true when the match is reached. */
const follow = ({ steps, text, effort }: Way, start: number, at: number, threads: Threads): boolean => {
  const todo = [start];
  for (let pc = todo.pop(); pc !== undefined; pc = todo.pop()) {
    effort.left -= 1;
    if (threads.seen[pc] === 1) continue;
    threads.seen[pc] = 1;
    const step = steps[pc] as Step;
    if (step.op === "match") return true;
    if (step.op === "jump") todo.push(step.to);
    else if (step.op === "split") todo.push(step.b, step.a);
    else if (step.op === "assert") {
      if (holds(step.kind, text, at)) todo.push(pc + 1);
    } else threads.list.push(pc);
  }
  return false;
};

const holds = (kind: "start" | "end" | "word" | "not_word", text: readonly number[], at: number): boolean => {
  if (kind === "start") return at === 0;
  if (kind === "end") return at === text.length;
  return (isWord(text[at - 1]) !== isWord(text[at])) === (kind === "word");
};
