// Puts lines of several logs, each of which comes by itself, into the order of their times. Pure.

type Line = { readonly source: string; readonly at: string };

/** Sorts in place. Lines of one log keep their order, also where a clock was set back. */
export const mergeLogs = <Some extends Line>(lines: Some[]): void => {
  const newest = new Map<string, string>();
  const keyed = lines.map((line) => {
    const before = newest.get(line.source) ?? "";
    const key = line.at > before ? line.at : before;
    newest.set(line.source, key);
    return { line, key };
  });
  keyed.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
  for (const [at, { line }] of keyed.entries()) lines[at] = line;
};
