// A problem in a manifest and its location.

/** A problem before its line is known; `pointer` is a JSON Pointer such as `/resources/0/name`. */
export type Finding = { readonly pointer: string; readonly reason: string };
