// Parses terminal colors in a line of text into pieces with class names. Other control sequences are removed. Pure.
import { trimEnd } from "#base/text/trim.ts";

export type Piece = { readonly text: string; readonly class: string };

const COLOR_CLASSES = ["a-d", "a-r", "a-g", "a-y", "a-b", "a-m", "a-c", ""];
// Colors and weights (m), other control sequences, titles and links.
// biome-ignore lint/suspicious/noControlCharactersInRegex: this pattern matches control characters
const SEQUENCE = /\x1b\[([\d;:]*)([A-Za-z])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-_]|[\x00-\x08\x0b-\x1f\x7f]/g;

/** Returns the pieces of one line. A carriage return restarts the line, as progress bars expect. */
export const parsePieces = (line: string): Piece[] => {
  const visible = line.includes("\r") ? (trimEnd(line, "\r").split("\r").at(-1) ?? "") : line;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the same
  if (!/[\x00-\x1f\x7f]/.test(visible)) return [{ text: visible, class: "" }];
  const pieces: Piece[] = [];
  let [color, bold, dim, at] = ["", false, false, 0];
  const push = (text: string): void => {
    if (text !== "") pieces.push({ text, class: [color, bold && "a-w", dim && "a-d"].filter(Boolean).join(" ") });
  };
  for (const match of visible.matchAll(SEQUENCE)) {
    push(visible.slice(at, match.index));
    at = match.index + match[0].length;
    if (match[2] !== "m") continue;
    const codes = (match[1] || "0").split(/[;:]/).map(Number);
    for (let i = 0; i < codes.length; i++) {
      const code = codes[i] ?? 0;
      if (code === 0) [color, bold, dim] = ["", false, false];
      else if (code === 1) bold = true;
      else if (code === 2) dim = true;
      else if (code === 22) [bold, dim] = [false, false];
      else if (code === 39) color = "";
      else if (code >= 30 && code <= 37) color = COLOR_CLASSES[code - 30] ?? "";
      else if (code >= 90 && code <= 97) color = COLOR_CLASSES[code - 90] ?? "";
      // Skips the arguments of 38;5;n and 38;2;r;g;b, which are not codes.
      else if (code === 38 || code === 48) i += codes[i + 1] === 5 ? 2 : 4;
    }
  }
  push(visible.slice(at));
  return pieces;
};

/** Returns the text without control sequences. */
export const stripControls = (line: string): string =>
  parsePieces(line)
    .map(({ text }) => text)
    .join("");
