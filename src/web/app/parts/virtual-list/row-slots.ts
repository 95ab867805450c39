// Assigns elements to the rows of a long list. A row that comes into view reuses the element of a row that left it, so that scrolling and
// filtering change texts instead of creating and removing elements. Pure.

type Key = string | number;

export type RowSlots = {
  /**
   * Returns the element number of each row to be rendered. A row keeps its number while it is rendered. Without `reuse`, a new row gets a
   * new element.
   */
  readonly assign: (keys: readonly Key[], reuse: boolean) => readonly number[];
};

export const createRowSlots = (): RowSlots => {
  let slots = new Map<Key, number>();
  let next = 0;
  return {
    assign(keys, reuse) {
      const currentKeys = new Set(keys);
      const freeSlots = reuse ? [...slots].filter(([key]) => !currentKeys.has(key)).map(([, slot]) => slot) : [];
      // Reversed, so that the lowest numbers are taken first.
      freeSlots.sort((a, b) => b - a);
      const nextSlots = new Map<Key, number>();
      for (const key of keys) nextSlots.set(key, slots.get(key) ?? freeSlots.pop() ?? next++);
      slots = nextSlots;
      return keys.map((key) => nextSlots.get(key) as number);
    },
  };
};
