// Something wrong with a manifest, and where.

/** A mistake before its line is known; `pointer` as in JSON Pointer, `/resources/0/name`. */
export type Finding = { readonly pointer: string; readonly reason: string };
