// A row of the benchmark: how one side is measured, and which figures are compared with which target.
import type { Driver, LoadResult } from "./driver.ts";
import type { BenchSetup, SideName, SideOptions, Target } from "./sides.ts";

/** Named figures of one measurement; the same names on both sides. */
export type Figures = Record<string, number>;

/** Medians of both sides; a side that was not measured is absent. */
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
  sides: BenchSetup;
  /** Seconds of one measured window. */
  seconds: number;
  /** How long the stalled followers do not read. */
  stallSeconds: number;
  start(side: SideName, needs: SideOptions): Promise<Target>;
  /** Returns the file with the GET sample for the baseline, created once. */
  sample(): Promise<string>;
  /**
   * Returns the log lines per second that the baseline accepts on this machine, measured once per run: rates are shares of it, never
   * absolute.
   */
  floorLimit(): Promise<number>;
}

export interface Row {
  name: string;
  title: string;
  /** BenchSetup that this row measures. */
  sides: SideName[];
  /** Limits the rounds of rows that take long. */
  maxRounds?: number;
  measure(bench: Bench, side: SideName): Promise<Figures>;
  /** Figures printed for both sides, with their units. */
  figures: Record<string, string>;
  verdicts: Verdict[];
}

/** Returns the product's figure divided by the baseline's. */
export function productRatio(figure: string): (medians: Medians) => number | undefined {
  return ({ floor, product }) => {
    const [below, above] = [floor?.[figure], product?.[figure]];
    return below && above !== undefined ? above / below : undefined;
  };
}

/** Returns the product's own figure. */
export function productFigure(figure: string): (medians: Medians) => number | undefined {
  return ({ product }) => product?.[figure];
}

/** Returns the faults of a load run; unless all are zero, its other figures are meaningless. */
export function faults(result: LoadResult): Figures {
  return {
    faults: result.errors + result.gaps + result.lines_missing + result.followers_closed,
    driver_busy: result.driver_busy,
  };
}

export const range = (count: number): number[] => Array.from({ length: count }, (_, index) => index);
