// A page of a list.

/** Number of rows to return, and to skip before them. */
export type Page = { limit: number; offset: number };
