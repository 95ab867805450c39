// The marks of a plot's axis: distinct, and integers when people and things are counted.
import { expect, test } from "bun:test";
import { getWorkspaceState } from "#src/web/app/data/states.ts";
import { COUNT, MONEY, SHORT_COUNT, TIME } from "#src/web/app/pages/insights/figures.ts";

/** Marks are at least 40 pixels apart, on 176. */
const MAX_MARKS = 176 / 40;

test.each([
  ["counts", COUNT, 9e6],
  ["large counts", SHORT_COUNT, 9e9],
  ["cost", MONEY, 9e10],
  ["time", TIME, 3e8],
])("[WB-82] two axis labels of %s are never equal", (_, { format, steps, mark, least }, most) => {
  for (let top = least; top < most; top = Math.ceil(top * 1.07)) {
    const step = steps.find((one) => top / one <= MAX_MARKS) ?? 0;
    expect(Number.isInteger(step) && step > 0).toBe(true);
    const marks = Array.from({ length: Math.floor(top / step) + 1 }, (_, at) => at * step);
    const words = marks.map((one) => (mark ? mark(one, step) : format(one)));
    expect([top, new Set(words).size]).toEqual([top, words.length]);
  }
});

test("[WB-82] costs in millionths are shown with their digits", () => {
  expect([0, 42, 4_200, 3_200_000, 1_240_000_000].map(MONEY.format)).toEqual([
    ...["$0", "$0.000042", "$0.0042", "$3.20", "$1,240"],
  ]);
  expect([20, 40].map((one) => MONEY.mark?.(one, 20))).toEqual(["$0.00002", "$0.00004"]);
});

test("[WB-83] a workspace whose agent still connects is not shown as ready", () => {
  const agent = (status: "connected" | "connecting" | "timeout") => ({ status }) as never;
  const state = (...agents: never[]) => getWorkspaceState({ status: "running", dormant_at: undefined, agents });
  expect([
    state(agent("connected")),
    state(agent("connected"), agent("connecting")),
    state(agent("timeout")),
    state(),
  ]).toEqual([...(["running", "busy", "needs", "running"] as const)]);
});
