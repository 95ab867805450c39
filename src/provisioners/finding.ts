// A problem in a manifest and its location.

/** A problem without its line, which is found later. `pointer`: a JSON Pointer such as `/resources/0/name`. */
export type Finding = { readonly pointer: string; readonly reason: string };
