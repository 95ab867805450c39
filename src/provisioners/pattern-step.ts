// The steps of a pattern that is compiled to an automaton. A `split` continues at both of its targets.

export type Step =
  | { op: "char"; test: (code: number) => boolean }
  | { op: "split"; first: number; second: number }
  | { op: "jump"; to: number }
  | { op: "assert"; kind: "start" | "end" | "word" | "not_word" }
  | { op: "match" };
