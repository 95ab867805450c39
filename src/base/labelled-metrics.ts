// Metrics with labels.

/** A metric with one number per combination of labels. */
export type LabeledValues = readonly { readonly labels: Readonly<Record<string, string>>; readonly value: number }[];
