// The arithmetic of the benchmark's report: medians, targets, and the result block of the README.
import { expect, test } from "bun:test";
import { formatVerdictTable, median, replaceResults } from "./report.ts";
import { productRatio, type Row } from "./row.ts";

const row: Row = {
  name: "sample",
  title: "a row",
  sides: ["floor", "product"],
  measure: () => Promise.resolve({}),
  figures: { speed: "speed" },
  verdicts: [
    { what: "ratio", target: ">= 0.7", value: productRatio("speed"), bound: 0.7, better: "higher", unit: "ratio" },
  ],
};

test("[BM-3] a target is checked against the ratio of the medians, not against the best or the last round", () => {
  const rounds = {
    floor: [{ speed: 100 }, { speed: 90 }, { speed: 1000 }],
    product: [{ speed: 99 }, { speed: 60 }, { speed: 10 }],
  };
  expect(median([3, 1, 2])).toBe(2);
  expect(median([4, 1])).toBe(2.5);
  expect(formatVerdictTable([{ row, rounds }])).toContain("| sample | ratio | 0.6 | >= 0.7 | NO |");
});

test("[BM-3] a comparison with a missing side is neither reached nor missed", () => {
  const table = formatVerdictTable([{ row, rounds: { floor: [{ speed: 100 }] } }]);
  expect(table).toContain("| sample | ratio | not measured | >= 0.7 | - |");
});

test("[BM-4] new results replace the old ones between the markers, and nothing else", () => {
  const readme = "before\n<!-- results: written by `bun run bench` -->\nold\n<!-- end of results -->\nafter\n";
  const updated = replaceResults(readme, "new");
  expect(updated).toContain("new");
  expect(updated).not.toContain("old");
  expect(updated.startsWith("before\n") && updated.endsWith("after\n")).toBe(true);
  expect(replaceResults(updated, "new")).toBe(updated);
  expect(() => replaceResults("no markers", "new")).toThrow("markers");
});
