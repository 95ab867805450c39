// The anchors of headings, in GitHub's format, so that links in the files work on GitHub and here. Pure; used by the build and the page.

const slug = (text: string): string =>
  text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .trim()
    .replace(/\s/g, "-");

/** Returns one slug per heading, in order. Repeated headings get a number. */
export const makeSlugs = (headings: readonly string[]): string[] => {
  const taken = new Map<string, number>();
  return headings.map((text) => {
    const base = slug(text);
    const count = taken.get(base) ?? 0;
    taken.set(base, count + 1);
    return count === 0 ? base : `${base}-${count}`;
  });
};
