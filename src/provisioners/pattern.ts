// Regular expressions written by template authors and matched against every user's input. JavaScript's engine backtracks, so a
// harmless-looking pattern can hang the server. Patterns are therefore compiled to an automaton that reads each character once. Features
// that need backtracking (lookaround, backreferences) are rejected, as in RE2 (rule TP-12).

import { parsePattern } from "./pattern-parse.ts";
import type { Step } from "./pattern-step.ts";

export type Pattern = {
  /**
   * Returns true if the pattern occurs anywhere in the text, subject to its anchors. Takes time proportional to the text's length times the
   * number of steps; returns undefined if that exceeds the limit.
   */
  test(text: string): boolean | undefined;
};

/** Maximum number of automaton steps per request; about 50 ms, during which no other request runs. */
const MAX_EFFORT = 1_500_000;

type Effort = { left: number };

/** The effort left for all patterns of the current synchronous request; undefined outside `withSharedEffort`. */
let sharedEffort: Effort | undefined;

/** Runs `work`. All patterns in it share one effort limit. */
export const withSharedEffort = <T>(work: () => T): T => {
  if (sharedEffort) return work();
  sharedEffort = { left: MAX_EFFORT };
  try {
    return work();
  } finally {
    sharedEffort = undefined;
  }
};

const isWord = (code: number | undefined): boolean =>
  code !== undefined &&
  ((code >= 48 && code <= 57) || (code >= 65 && code <= 90) || (code >= 97 && code <= 122) || code === 95);

/** The cost of compiling one step, in matching steps. */
const PER_WRITTEN = 3;

/** Throws a SyntaxError that says what is wrong or not supported. */
export const compilePattern = (source: string): Pattern => {
  const steps = parsePattern(source);
  // A pattern is compiled again for each value.
  if (sharedEffort) sharedEffort.left -= steps.length * PER_WRITTEN;
  return {
    test: (text) =>
      runSteps(
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

/** Returns whether a value matches a pattern; undefined if the check exceeds the effort limit. */
export const matchesPattern = (source: string, value: string): boolean | undefined => {
  if (sharedEffort && sharedEffort.left < 0) return undefined;
  const pattern = tryCompilePattern(source);
  return pattern === undefined || pattern.test(value);
};

const runSteps = (steps: readonly Step[], text: readonly number[]): boolean | undefined => {
  const effort = sharedEffort ?? { left: MAX_EFFORT };
  const input: MatchInput = { steps, text, effort };
  let current = new Threads(steps.length);
  let next = new Threads(steps.length);
  for (let at = 0; at <= text.length; at++) {
    effort.left -= steps.length / PER_CLEARED + 1;
    if (effort.left < 0) return undefined;
    // A match may begin at every place.
    if (followStep(input, 0, at, current)) return true;
    const code = text[at];
    if (code === undefined) return false;
    for (const pc of current.list) {
      const step = steps[pc] as Step;
      if (step.op === "char" && step.test(code) && followStep(input, pc + 1, at + 1, next)) return true;
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

type MatchInput = { readonly steps: readonly Step[]; readonly text: readonly number[]; readonly effort: Effort };

/** Adds `start` and all that is reached from it without a character; true when the match is reached. */
const followStep = ({ steps, text, effort }: MatchInput, start: number, at: number, threads: Threads): boolean => {
  const pending = [start];
  for (let pc = pending.pop(); pc !== undefined; pc = pending.pop()) {
    effort.left -= 1;
    if (threads.seen[pc] === 1) continue;
    threads.seen[pc] = 1;
    const step = steps[pc] as Step;
    if (step.op === "match") return true;
    if (step.op === "jump") pending.push(step.to);
    else if (step.op === "split") pending.push(step.b, step.a);
    else if (step.op === "assert") {
      if (assertionHolds(step.kind, text, at)) pending.push(pc + 1);
    } else threads.list.push(pc);
  }
  return false;
};

const assertionHolds = (kind: "start" | "end" | "word" | "not_word", text: readonly number[], at: number): boolean => {
  if (kind === "start") return at === 0;
  if (kind === "end") return at === text.length;
  return (isWord(text[at - 1]) !== isWord(text[at])) === (kind === "word");
};
