// The state of a workspace or chat: a glyph whose shape says it as well as its color, and words.
import type { ComponentChildren } from "preact";
import type { StateKind } from "../data/states.ts";

/** `tint`: the words in the state's color, for the one state a page is about. */
export const State = ({ kind, tint, children }: { kind: StateKind; tint?: boolean; children?: ComponentChildren }) => (
  <span class={tint ? "state tint" : "state"} data-state={kind}>
    {children}
  </span>
);
