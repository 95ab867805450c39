// The order in which a workspace's page shows the lines of its build and agents.
import { expect, test } from "bun:test";
import { mergeLogs } from "#src/web/app/data/log-order.ts";

const mergeText = (text: string): string => {
  const lines = text.split(" ").map((entry) => ({ source: entry.charAt(0), at: entry.slice(1) }));
  mergeLogs(lines);
  return lines.map(({ source, at }) => source + at).join(" ");
};

test("[WB-97] lines of several logs are sorted by time, and lines of the same log keep their order", () => {
  expect(mergeText("b1 a3 a5 b1 b4")).toBe("b1 b1 a3 b4 a5");
  expect(mergeText("b2 a2 b2 a2")).toBe("b2 a2 b2 a2");
  // The clock of log a was set back.
  expect(mergeText("a7 a3 b5 a8")).toBe("b5 a7 a3 a8");
});
