// A part of a list.

/** Rows to give, and rows to leave out before them. */
export type Page = { limit: number; offset: number };
