// The assignment of elements to the rows of a long list (src/web/app/parts/virtual-list/row-slots.ts).
import { expect, test } from "bun:test";
import { createRowSlots } from "../../src/web/app/parts/virtual-list/row-slots.ts";

const listRows = (start: number, count: number): number[] => Array.from({ length: count }, (_, index) => start + index);

test("[WB-76] a row that scrolls into view reuses an element that scrolled out, and visible rows keep their elements", () => {
  const slots = createRowSlots();
  expect(slots.assign(listRows(0, 4), true)).toEqual([0, 1, 2, 3]);
  expect(slots.assign(listRows(2, 4), true)).toEqual([2, 3, 0, 1]);
  expect(slots.assign(listRows(3, 4), true)).toEqual([3, 0, 1, 2]);
});

test("[WB-76] a jump to other rows creates no new elements, and each row has its own", () => {
  const slots = createRowSlots();
  slots.assign(listRows(0, 50), true);
  for (const start of [400, 9_000, 20, 0]) {
    const assigned = slots.assign(listRows(start, 50), true);
    expect(new Set(assigned).size).toBe(50);
    expect(Math.max(...assigned)).toBe(49);
  }
});

test("[WB-76] without reuse, new rows get new elements", () => {
  const slots = createRowSlots();
  const before = slots.assign(listRows(0, 4), true);
  const after = slots.assign(listRows(2, 4), false);
  expect(after.slice(0, 2)).toEqual(before.slice(2));
  expect(after.slice(2).every((slot) => !before.includes(slot))).toBe(true);
});
