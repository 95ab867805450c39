// One step of a compiled pattern.

/** One step of the automaton: consumes a character, or continues without one. */
export type Step =
  | { op: "char"; test: (code: number) => boolean }
  | { op: "split"; a: number; b: number }
  | { op: "jump"; to: number }
  | { op: "assert"; kind: "start" | "end" | "word" | "not_word" }
  | { op: "match" };
