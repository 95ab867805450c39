// The cost of a run: a line per step with wall-clock and CPU time, and the slowest files.
import { listSlowestFiles, type TestCase } from "./junit.ts";

/** Seconds of a step: by the clock, and CPU time of all processes that were waited for. */
export type Cost = { readonly seconds: number; readonly processor: number };

/** Adds up costs, for a step that is retried. */
export const measureCost = (child: Pick<Bun.Subprocess, "resourceUsage">, begun: number): Cost => ({
  seconds: (performance.now() - begun) / 1000,
  processor: Number(child.resourceUsage()?.cpuTime.total ?? 0) / 1e6,
});

/** Formats a cost for the summary. */
export const formatCost = ({ seconds, processor }: Cost): string =>
  `(${seconds.toFixed(1)} s, processor ${processor.toFixed(1)} s)`;

/** Returns the `count` slowest files of a step, one line each. */
export const formatSlowest = (cases: readonly TestCase[], count: number): string[] =>
  listSlowestFiles(cases, count).map(([file, took]) => `        ${took.toFixed(1).padStart(6)} s  ${file}`);
