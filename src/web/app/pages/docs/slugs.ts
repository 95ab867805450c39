// What the headings of a page are called in its links, as GitHub calls them: links in the files lead to the same places there and here.
// Pure; the build and the page use it.

const slug = (text: string): string =>
  text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .trim()
    .replace(/\s/g, "-");

/** One for each heading, in order; the second of the same words has a number. */
export const makeSlugs = (headings: readonly string[]): string[] => {
  const taken = new Map<string, number>();
  return headings.map((text) => {
    const base = slug(text);
    const count = taken.get(base) ?? 0;
    taken.set(base, count + 1);
    return count === 0 ? base : `${base}-${count}`;
  });
};
