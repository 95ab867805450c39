// Which element shows which row of a long list. A row that comes into view takes the element of one that has gone, so that scrolling
// and typing change texts instead of making and throwing away elements. Pure.

type Key = string | number;

export type RowSlots = {
  /**
   * The element's number for each of these rows, which are all that are drawn now. A row keeps its number while it is drawn. Without
   * `reuse` a new row gets a new element.
   */
  readonly assign: (keys: readonly Key[], reuse: boolean) => readonly number[];
};

export const rowSlots = (): RowSlots => {
  let taken = new Map<Key, number>();
  let next = 0;
  return {
    assign(keys, reuse) {
      const kept = new Set(keys);
      const free = reuse ? [...taken].filter(([key]) => !kept.has(key)).map(([, slot]) => slot) : [];
      // From the end: the lowest numbers go first.
      free.sort((a, b) => b - a);
      const now = new Map<Key, number>();
      for (const key of keys) now.set(key, taken.get(key) ?? free.pop() ?? next++);
      taken = now;
      return keys.map((key) => now.get(key) as number);
    },
  };
};
