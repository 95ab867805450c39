// The state of a workspace or chat: a glyph with a distinct shape and color, and a label.
import type { ComponentChildren } from "preact";
import type { StateKind } from "../data/states.ts";

/** `tint`: colors the label as well, for the main state of a page. */
export const State = ({ kind, tint, children }: { kind: StateKind; tint?: boolean; children?: ComponentChildren }) => (
  <span class={tint ? "state tint" : "state"} data-state={kind}>
    {children}
  </span>
);
