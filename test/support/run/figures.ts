// The cost of a run: a line per step with wall-clock and CPU time, the slowest files, and how busy the machine was.
import type { CpuInfo } from "node:os";
import { listSlowestFiles, type TestCase } from "./junit.ts";

/** Seconds of a step: wall-clock time, and CPU time of all processes that were waited for. */
export type Cost = { readonly seconds: number; readonly processor: number };

/** Returns the cost of a child process since `startedAt`. */
export const measureCost = (child: Pick<Bun.Subprocess, "resourceUsage">, startedAt: number): Cost => ({
  seconds: (performance.now() - startedAt) / 1000,
  processor: Number(child.resourceUsage()?.cpuTime.total ?? 0) / 1e6,
});

/** Formats a cost for the summary. */
export const formatCost = ({ seconds, processor }: Cost): string =>
  `(${seconds.toFixed(1)} s, processor ${processor.toFixed(1)} s)`;

/** Returns the `count` slowest files of a step, one line each. */
export const formatSlowest = (cases: readonly TestCase[], count: number): string[] =>
  listSlowestFiles(cases, count).map(([file, seconds]) => `        ${seconds.toFixed(1).padStart(6)} s  ${file}`);

const sumTimes = (processors: readonly Pick<CpuInfo, "times">[]): { total: number; idle: number } => {
  const times = processors.map((processor) => processor.times);
  const total = times.flatMap((processorTimes) => Object.values(processorTimes)).reduce((a, b) => a + b, 0);
  return { total, idle: times.reduce((sum, { idle }) => sum + idle, 0) };
};

/**
 * Formats the share of time that the machine's processors were busy between two results of `cpus()`. Unlike the cost of a step, it includes
 * processes that no test waits for, such as a browser's and a database's.
 */
export const formatBusyShare = (
  before: readonly Pick<CpuInfo, "times">[],
  after: readonly Pick<CpuInfo, "times">[],
): string => {
  const [start, end] = [sumTimes(before), sumTimes(after)];
  const share = 1 - (end.idle - start.idle) / Math.max(1, end.total - start.total);
  return `        processors: ${Math.round(100 * share)} % busy`;
};
