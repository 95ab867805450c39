// Merges the lines of several logs in the order of their timestamps. Pure.

type Line = { readonly source: string; readonly at: string };

/** Sorts in place. Lines of one log keep their order, even if a clock was set back. */
export const mergeLogs = <Some extends Line>(lines: Some[]): void => {
  const newest = new Map<string, string>();
  const keyed = lines.map((line) => {
    const newestBefore = newest.get(line.source) ?? "";
    const key = line.at > newestBefore ? line.at : newestBefore;
    newest.set(line.source, key);
    return { line, key };
  });
  keyed.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
  for (const [index, { line }] of keyed.entries()) lines[index] = line;
};
