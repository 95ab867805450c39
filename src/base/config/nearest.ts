// "Did you mean ...?" for misspelt settings and verbs.

/** The known name closest to `name`, when at most a third of its letters differ. */
export const nearest = (name: string, known: readonly string[]): string | undefined => {
  const ranked = known.map((one) => ({ one, distance: editDistance(name.toLowerCase(), one.toLowerCase()) }));
  const best = ranked.sort((a, b) => a.distance - b.distance)[0];
  return best && best.distance <= Math.ceil(name.length / 3) ? best.one : undefined;
};

/** ` Did you mean X?`, or nothing. */
export const didYouMean = (name: string, known: readonly string[]): string => {
  const best = nearest(name, known);
  return best === undefined ? "" : ` Did you mean ${best}?`;
};

/** How many letters must be changed, added or left away to make one name of the other. */
export function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replace = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replace, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
