// Figures with labels.

/** A figure with labels: one number for each combination. */
export type Labelled = readonly { readonly labels: Readonly<Record<string, string>>; readonly value: number }[];
