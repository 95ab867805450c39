// What a plot counts: how it is said, and where its axis may have marks. Pure.
export type Measure = {
  /** A number with its unit. */
  readonly format: (value: number) => string;
  /** Between two marks, the least first. */
  readonly steps: readonly number[];
  /** A mark of an axis with such a step: two beside each other never read the same. Without it as any number. */
  readonly mark?: (value: number, step: number) => string;
  /** What the axis reaches when there is nothing. */
  readonly least: number;
};
