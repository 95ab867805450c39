// A row of the benchmark: how one side is measured, and which figures are compared with which target.
import type { Driver, LoadResult } from "./driver.ts";
import type { BenchSetup, SideName, SideOptions, Target } from "./sides.ts";

/** Named figures of one measurement; the same names on both sides. */
export type Figures = Record<string, number>;

/** Medians of both sides. A side that was not measured is missing. */
export interface Medians {
  floor?: Figures;
  product?: Figures;
}

/** One evaluated figure. `value` is undefined if a required side is missing. */
export interface Verdict {
  what: string;
  /** The target as printed. */
  target: string;
  value(medians: Medians): number | undefined;
  bound: number | ((medians: Medians) => number);
  better: "higher" | "lower";
  unit: "ratio" | "ms" | "MB" | "KB" | "s" | "count";
}

export interface Bench {
  driver: Driver;
  setup: BenchSetup;
  /** Seconds of one measured window. */
  seconds: number;
  /** How long the stalled followers do not read. */
  stallSeconds: number;
  start(side: SideName, options: SideOptions): Promise<Target>;
  /** Returns the file with the GET sample for the baseline. Creates it at the first call. */
  sample(): Promise<string>;
  /**
   * Returns the log lines per second that the baseline accepts on this machine, measured once per run. Rows use shares of it as rates.
   */
  floorLimit(): Promise<number>;
}

export interface Row {
  name: string;
  title: string;
  /** The sides that this row measures. */
  sides: SideName[];
  /** Maximum number of rounds, for rows that take long. */
  maxRounds?: number;
  measure(bench: Bench, side: SideName): Promise<Figures>;
  /** Figures printed for both sides, with their units. */
  figures: Record<string, string>;
  verdicts: Verdict[];
}

/** Returns the product's figure divided by the baseline's. */
export function productRatio(figure: string): (medians: Medians) => number | undefined {
  return ({ floor, product }) => {
    const [baseline, measured] = [floor?.[figure], product?.[figure]];
    return baseline && measured !== undefined ? measured / baseline : undefined;
  };
}

/** Returns the product's own figure. */
export function productFigure(figure: string): (medians: Medians) => number | undefined {
  return ({ product }) => product?.[figure];
}

/** Returns the faults of a load run. Unless all are zero, the other figures are meaningless. */
export function countFaults(result: LoadResult): Figures {
  return {
    faults: result.errors + result.gaps + result.lines_wrong + result.followers_closed,
    driver_busy: result.driver_busy,
  };
}

export const range = (count: number): number[] => Array.from({ length: count }, (_, index) => index);
