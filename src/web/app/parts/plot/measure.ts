// The unit of a plot: how values are formatted and where the axis can have marks. Pure.
export type Measure = {
  /** Formats a value with its unit. */
  readonly format: (value: number) => string;
  /** Possible distances between marks, in ascending order. */
  readonly steps: readonly number[];
  /** Formats an axis mark when marks are `step` apart, so that neighboring labels differ. Defaults to `format`. */
  readonly formatTick?: (value: number, step: number) => string;
  /** The minimum extent of the axis. */
  readonly minExtent: number;
};
