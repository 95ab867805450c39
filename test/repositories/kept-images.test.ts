// A repository prebuild's stored images, and the time of its next check.
import { expect, test } from "bun:test";
import { nextCheckTime, withBuilt } from "#actors/image-prebuilds/retention.ts";

const makeImages = (commit: string, ...names: string[]) => ({ commit, names });

test("[IB-8] a prebuild keeps its newest images, and images that another commit also needs", () => {
  const existing = [makeImages("b", "base:1", "full:b"), makeImages("a", "base:1", "full:a")];
  expect(withBuilt(existing, makeImages("c", "base:1", "full:c"), 2)).toEqual({
    images: [makeImages("c", "base:1", "full:c"), makeImages("b", "base:1", "full:b")],
    removed: ["full:a"],
  });
  const withSharedImage = withBuilt(existing, makeImages("c", "base:1", "full:a"), 2);
  expect([withSharedImage.images.map(({ commit }) => commit), withSharedImage.removed]).toEqual([["c", "b"], []]);
  expect(withBuilt(existing, makeImages("d"), 1).removed).toEqual(["base:1", "full:b", "full:a"]);
});

test("[IB-7] the interval sets the next check, and a failed build is retried twice before that", () => {
  const hourMs = 3_600_000;
  expect(nextCheckTime({ interval_hours: 0, tries: 0 }, 0)).toBeUndefined();
  expect(nextCheckTime({ interval_hours: 6, tries: 0 }, 0)).toBe(6 * hourMs);
  expect([1, 2, 3].map((tries) => nextCheckTime({ interval_hours: 0, tries }, 0))).toEqual([
    600_000,
    1_200_000,
    undefined,
  ]);
  expect(nextCheckTime({ interval_hours: 1, tries: 3 }, 0)).toBe(hourMs);
});
