// What a plot counts: how it is said, and where its axis may have marks. Pure.
export type Measure = {
  /** A number with its unit. */
  readonly format: (value: number) => string;
  /** Between two marks, the least first. */
  readonly steps: readonly number[];
  /** How a mark of an axis is written when marks are `step` apart, so that two neighbours differ; by default as `format` writes it. */
  readonly mark?: (value: number, step: number) => string;
  /** What the axis reaches when there is nothing. */
  readonly least: number;
};
