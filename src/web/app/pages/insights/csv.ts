// Exports a table as CSV (RFC 4180). Pure.

export type Cell = string | number | null;
export type Sheet = { readonly head: readonly string[]; readonly rows: readonly (readonly Cell[])[] };

/** Escapes text that a spreadsheet would run as a formula. */
const formatCell = (cell: Cell): string => {
  if (cell === null) return "";
  if (typeof cell === "number") return String(cell);
  const text = /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

export const toCsv = ({ head, rows }: Sheet): string =>
  [head, ...rows].map((row) => `${row.map(formatCell).join(",")}\r\n`).join("");
