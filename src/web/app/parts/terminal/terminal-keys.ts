// Keys that a phone's keyboard lacks: the input they send, and the effect of Ctrl or Alt on the next character. Pure.

export type Modifier = "ctrl" | "alt";

/** Applies a modifier: Ctrl and a letter give a control character, Alt adds an escape before it. */
export const applyModifier = (data: string, modifier: Modifier | undefined): string => {
  if (modifier === "alt") return `\x1b${data}`;
  if (modifier !== "ctrl" || data.length !== 1) return data;
  if (data === " ") return "\0";
  if (data === "?") return "\x7f";
  const code = data.toUpperCase().charCodeAt(0);
  return code >= 64 && code < 96 ? String.fromCharCode(code & 31) : data;
};

export type RowKey = { readonly label: string; readonly name: string; readonly data: string };

const makeArrow = (label: string, name: string, letter: string): RowKey => ({ label, name, data: `\x1b[${letter}` });

/** Shown before the modifier keys. */
export const KEYS_BEFORE_MODIFIERS: readonly RowKey[] = [
  { label: "Esc", name: "Escape", data: "\x1b" },
  { label: "Tab", name: "Tab", data: "\t" },
];

/** Shown after the modifier keys. */
export const KEYS_AFTER_MODIFIERS: readonly RowKey[] = [
  ...["|", "/", "-", "~"].map((label) => ({ label, name: label, data: label })),
  makeArrow("\u2191", "Up", "A"),
  makeArrow("\u2193", "Down", "B"),
  makeArrow("\u2190", "Left", "D"),
  makeArrow("\u2192", "Right", "C"),
];

/** Sends arrow keys in application mode to programs that requested it. */
export const toCursorKeys = (data: string, isApplication: boolean): string =>
  isApplication && data.length === 3 && data.startsWith("\x1b[") ? data.replace("[", "O") : data;
