// One step of a compiled pattern.

/** One step of the automaton: consume a character, or go on without. */
export type Step =
  | { op: "char"; test: (code: number) => boolean }
  | { op: "split"; a: number; b: number }
  | { op: "jump"; to: number }
  | { op: "assert"; kind: "start" | "end" | "word" | "not_word" }
  | { op: "match" };
