// Matches values that users enter against regular expressions of template authors. JavaScript's engine backtracks, so a harmless-looking
// pattern can hang the server. Patterns are therefore compiled to an automaton that reads each character once. Features that need
// backtracking (lookaround, backreferences) are rejected, as in RE2 (rule TP-12).

import { parsePattern } from "./pattern-parse.ts";
import type { Step } from "./pattern-step.ts";

export type Pattern = {
  /**
   * Returns true if any part of the text matches the pattern. Takes time proportional to the text's length times the number of steps.
   * Returns undefined if that exceeds the limit.
   */
  test(text: string): boolean | undefined;
};

/** Maximum number of automaton steps per request. They take about 50 ms, during which no other request runs. */
const MAX_STEPS_PER_REQUEST = 1_500_000;

type Effort = { remaining: number };

/** The remaining effort for all patterns of the current synchronous request; undefined outside of `withSharedEffort`. */
let sharedEffort: Effort | undefined;

/** Runs `work`. All patterns in it share one effort limit. */
export const withSharedEffort = <T>(work: () => T): T => {
  if (sharedEffort) return work();
  sharedEffort = { remaining: MAX_STEPS_PER_REQUEST };
  try {
    return work();
  } finally {
    sharedEffort = undefined;
  }
};

const isWordCode = (code: number | undefined): boolean =>
  code !== undefined &&
  ((code >= 48 && code <= 57) || (code >= 65 && code <= 90) || (code >= 97 && code <= 122) || code === 95);

/** The cost of compiling one step, in automaton steps. */
const COMPILE_COST = 3;

/** Compiles a pattern. Throws a SyntaxError if it is invalid or not supported. */
export const compilePattern = (source: string): Pattern => {
  const steps = parsePattern(source);
  // A pattern is compiled again for each value.
  if (sharedEffort) sharedEffort.remaining -= steps.length * COMPILE_COST;
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

/** Returns true if the value matches, or if only Go's engine can parse the pattern. Returns undefined if the effort limit is exceeded. */
export const matchesPattern = (source: string, value: string): boolean | undefined => {
  if (sharedEffort && sharedEffort.remaining < 0) return undefined;
  const pattern = tryCompilePattern(source);
  return pattern === undefined || pattern.test(value);
};

const runSteps = (steps: readonly Step[], text: readonly number[]): boolean | undefined => {
  const effort = sharedEffort ?? { remaining: MAX_STEPS_PER_REQUEST };
  const input: MatchInput = { steps, text, effort };
  let current = new Threads(steps.length);
  let next = new Threads(steps.length);
  for (let position = 0; position <= text.length; position++) {
    effort.remaining -= steps.length / STEPS_CLEARED_PER_COST + 1;
    if (effort.remaining < 0) return undefined;
    // A match may begin at every position.
    if (followStep(input, 0, position, current)) return true;
    const code = text[position];
    if (code === undefined) return false;
    for (const stepIndex of current.list) {
      const step = steps[stepIndex] as Step;
      if (step.op === "char" && step.test(code) && followStep(input, stepIndex + 1, position + 1, next)) return true;
    }
    [current, next] = [next, current];
    next.clear();
  }
  return false;
};

/** Number of steps for which `Threads.clear` takes as long as one automaton step. */
const STEPS_CLEARED_PER_COST = 64;

/** The steps at which the automaton currently is, without duplicates. */
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

/** Adds `start` and all steps that are reachable from it without reading a character. Returns true if the match is reached. */
const followStep = (
  { steps, text, effort }: MatchInput,
  start: number,
  position: number,
  threads: Threads,
): boolean => {
  const pending = [start];
  for (let stepIndex = pending.pop(); stepIndex !== undefined; stepIndex = pending.pop()) {
    effort.remaining -= 1;
    if (threads.seen[stepIndex] === 1) continue;
    threads.seen[stepIndex] = 1;
    const step = steps[stepIndex] as Step;
    if (step.op === "match") return true;
    if (step.op === "jump") pending.push(step.to);
    else if (step.op === "split") pending.push(step.second, step.first);
    else if (step.op === "assert") {
      if (isAssertionTrue(step.kind, text, position)) pending.push(stepIndex + 1);
    } else threads.list.push(stepIndex);
  }
  return false;
};

const isAssertionTrue = (
  kind: "start" | "end" | "word" | "not_word",
  text: readonly number[],
  position: number,
): boolean => {
  if (kind === "start") return position === 0;
  if (kind === "end") return position === text.length;
  return (isWordCode(text[position - 1]) !== isWordCode(text[position])) === (kind === "word");
};
