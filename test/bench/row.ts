// What a row of the benchmark is: how one side is measured, and which figures are judged against which target.
import type { Driver, LoadResult } from "./driver.ts";
import type { SideName, SideNeeds, Sides, Target } from "./sides.ts";

/** Named numbers of one measurement; the same names on both sides. */
export type Figures = Record<string, number>;

/** Medians of both sides; a side that was not measured is absent. */
export interface Medians {
  floor?: Figures;
  product?: Figures;
}

/** One judged number. `value` is undefined while a side it needs is missing. */
export interface Verdict {
  what: string;
  /** The target in words, as printed. */
  target: string;
  value(medians: Medians): number | undefined;
  bound: number | ((medians: Medians) => number);
  better: "higher" | "lower";
  unit: "ratio" | "ms" | "MB" | "KB" | "s" | "count";
}

export interface Bench {
  driver: Driver;
  sides: Sides;
  /** Seconds of one measured window. */
  seconds: number;
  /** How long the stalled followers do not read. */
  stallSeconds: number;
  start(side: SideName, needs: SideNeeds): Promise<Target>;
  /** File with the GET sample for the floor, made once. */
  sample(): Promise<string>;
  /** Log lines a second that the floor takes on this machine, measured once in a run: rates are shares of it, never figures of a machine. */
  floorLimit(): Promise<number>;
}

export interface Row {
  name: string;
  title: string;
  /** Sides that this row measures. */
  sides: SideName[];
  /** Rows that take long run fewer rounds than asked for. */
  maxRounds?: number;
  measure(bench: Bench, side: SideName): Promise<Figures>;
  /** Figures that are printed for both sides, with their units. */
  figures: Record<string, string>;
  verdicts: Verdict[];
}

/** The product's figure divided by the floor's. */
export function ratioOf(figure: string): (medians: Medians) => number | undefined {
  return ({ floor, product }) => {
    const [below, above] = [floor?.[figure], product?.[figure]];
    return below && above !== undefined ? above / below : undefined;
  };
}

/** The product's own figure. */
export function productFigure(figure: string): (medians: Medians) => number | undefined {
  return ({ product }) => product?.[figure];
}

/** What went wrong in a load run; anything but zeros makes its other figures worthless. */
export function faults(result: LoadResult): Figures {
  return {
    faults: result.errors + result.gaps + result.lines_missing + result.followers_closed,
    driver_busy: result.driver_busy,
  };
}

export const range = (count: number): number[] => Array.from({ length: count }, (_, index) => index);
