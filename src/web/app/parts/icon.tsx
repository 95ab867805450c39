// An icon of the sprite. Hidden from screen readers: next to a word it is redundant, and alone it needs a label on its control.
import type { IconName } from "../icons.ts";

export const Icon = ({ name, small }: { name: IconName; small?: boolean }) => (
  <svg class={small ? "i sm" : "i"} aria-hidden="true">
    <use href={`#i-${name}`} />
  </svg>
);
