// A repository prebuild's stored images, and the time of its next check.
import { expect, test } from "bun:test";
import { nextLook, withBuilt } from "#actors/image-prebuilds/kept.ts";

const images = (commit: string, ...names: string[]) => ({ commit, names });

test("[IB-8] the newest images are kept, and one that another commit needs, too, is not removed", () => {
  const kept = [images("b", "base:1", "full:b"), images("a", "base:1", "full:a")];
  expect(withBuilt(kept, images("c", "base:1", "full:c"), 2)).toEqual({
    images: [images("c", "base:1", "full:c"), images("b", "base:1", "full:b")],
    removed: ["full:a"],
  });
  const same = withBuilt(kept, images("c", "base:1", "full:a"), 2);
  expect([same.images.map(({ commit }) => commit), same.removed]).toEqual([["c", "b"], []]);
  expect(withBuilt(kept, images("d"), 1).removed).toEqual(["base:1", "full:b", "full:a"]);
});

test("[IB-7] a schedule leads to the next look, and a failed build to a few more before that", () => {
  const hour = 3_600_000;
  expect(nextLook({ interval_hours: 0, tries: 0 }, 0)).toBeUndefined();
  expect(nextLook({ interval_hours: 6, tries: 0 }, 0)).toBe(6 * hour);
  expect([1, 2, 3].map((tries) => nextLook({ interval_hours: 0, tries }, 0))).toEqual([600_000, 1_200_000, undefined]);
  expect(nextLook({ interval_hours: 1, tries: 3 }, 0)).toBe(hour);
});
