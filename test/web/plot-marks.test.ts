// The ticks of a plot's axis: distinct labels, and integers for counts. Also the state of a workspace whose agent connects.
import { expect, test } from "bun:test";
import { getWorkspaceState } from "#src/web/app/data/states.ts";
import { COUNT, MONEY, SHORT_COUNT, TIME } from "#src/web/app/pages/insights/figures.ts";

/** Ticks are at least 40 pixels apart, on an axis of 176 pixels. */
const MAX_TICKS = 176 / 40;

test.each([
  ["counts", COUNT, 9e6],
  ["large counts", SHORT_COUNT, 9e9],
  ["cost", MONEY, 9e10],
  ["time", TIME, 3e8],
])("[WB-82] two axis labels of %s are never equal", (_, { format, steps, formatTick, minExtent }, maxValue) => {
  for (let top = minExtent; top < maxValue; top = Math.ceil(top * 1.07)) {
    const step = steps.find((candidate) => top / candidate <= MAX_TICKS) ?? 0;
    expect(Number.isInteger(step) && step > 0).toBe(true);
    const ticks = Array.from({ length: Math.floor(top / step) + 1 }, (_, index) => index * step);
    const labels = ticks.map((tick) => (formatTick ? formatTick(tick, step) : format(tick)));
    expect([top, new Set(labels).size]).toEqual([top, labels.length]);
  }
});

test("[WB-82] small costs are shown with their significant digits", () => {
  expect([0, 42, 4_200, 3_200_000, 1_240_000_000].map(MONEY.format)).toEqual([
    ...["$0", "$0.000042", "$0.0042", "$3.20", "$1,240"],
  ]);
  expect([20, 40].map((cost) => MONEY.formatTick?.(cost, 20))).toEqual(["$0.00002", "$0.00004"]);
});

test("[WB-83] a workspace is not shown as ready while its agent is connecting", () => {
  const agent = (status: "connected" | "connecting" | "timeout") => ({ status }) as never;
  const getState = (...agents: never[]) => getWorkspaceState({ status: "running", dormant_at: undefined, agents });
  expect([
    getState(agent("connected")),
    getState(agent("connected"), agent("connecting")),
    getState(agent("timeout")),
    getState(),
  ]).toEqual([...(["running", "busy", "needs", "running"] as const)]);
});
