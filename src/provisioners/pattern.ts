// Regular expressions written by template authors and matched against every user's input. JavaScript's engine backtracks, so a
// harmless-looking pattern can hang the server. Patterns are therefore compiled to an automaton that reads each character once. Features
// that need backtracking (lookaround, backreferences) are rejected, as in RE2 (rule TP-12).

import { parsePattern } from "./pattern-parse.ts";
import type { Step } from "./pattern-step.ts";

export type Pattern = {
  /** Returns true if the pattern occurs anywhere in the text, unless it is anchored. Takes time proportional to text length times steps. */
  test(text: string): boolean;
};

const isWord = (code: number | undefined): boolean =>
  code !== undefined &&
  ((code >= 48 && code <= 57) || (code >= 65 && code <= 90) || (code >= 97 && code <= 122) || code === 95);

/** Throws a SyntaxError that describes what is invalid or unsupported. */
export const compilePattern = (source: string): Pattern => {
  const steps = parsePattern(source);
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

const run = (steps: readonly Step[], text: readonly number[]): boolean => {
  let current = new Threads(steps.length);
  let next = new Threads(steps.length);
  for (let at = 0; at <= text.length; at++) {
    // A match may start at any position.
    if (follow(steps, 0, text, at, current)) return true;
    const code = text[at];
    if (code === undefined) return false;
    for (const pc of current.list) {
      const step = steps[pc] as Step;
      if (step.op === "char" && step.test(code) && follow(steps, pc + 1, text, at + 1, next)) return true;
    }
    [current, next] = [next, current];
    next.clear();
  }
  return false;
};

/** The set of active states of the automaton. */
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

/** Adds `start` and all states reachable without consuming a character; returns true if the match state is reached. */
const follow = (
  steps: readonly Step[],
  start: number,
  text: readonly number[],
  at: number,
  threads: Threads,
): boolean => {
  const todo = [start];
  for (let pc = todo.pop(); pc !== undefined; pc = todo.pop()) {
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
