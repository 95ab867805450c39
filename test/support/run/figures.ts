// What a run has cost: a line for each step with the time it took and the processor's, and the slowest files.
import { slowestFiles, type TestCase } from "./junit.ts";

/** Seconds of a step: as a clock shows them, and of all processors with every process that was waited for. */
export type Cost = { readonly seconds: number; readonly processor: number };

/** Both together, as when a step is tried again. */
export const costOf = (child: Pick<Bun.Subprocess, "resourceUsage">, begun: number): Cost => ({
  seconds: (performance.now() - begun) / 1000,
  processor: Number(child.resourceUsage()?.cpuTime.total ?? 0) / 1e6,
});

/** As it stands in the summary. */
export const costLine = ({ seconds, processor }: Cost): string =>
  `(${seconds.toFixed(1)} s, processor ${processor.toFixed(1)} s)`;

/** The `count` slowest files of a step, a line each. */
export const slowestLines = (cases: readonly TestCase[], count: number): string[] =>
  slowestFiles(cases, count).map(([file, took]) => `        ${took.toFixed(1).padStart(6)} s  ${file}`);
