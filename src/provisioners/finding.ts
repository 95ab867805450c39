// A problem in a manifest and its location.

/** A problem whose line is not known yet. `pointer`: a JSON Pointer such as `/resources/0/name`. */
export type Finding = { readonly pointer: string; readonly reason: string };
