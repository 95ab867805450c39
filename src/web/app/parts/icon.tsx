// An icon of the sprite. Alongside a word it says nothing to a reader of the screen; alone it needs a label on its control.
import type { IconName } from "../icons.ts";

export const Icon = ({ name, small }: { name: IconName; small?: boolean }) => (
  <svg class={small ? "i sm" : "i"} aria-hidden="true">
    <use href={`#i-${name}`} />
  </svg>
);
