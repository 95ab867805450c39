// Characters that no name, title or address may hold, as the inside of a class in a regular expression: they hide a part of a text or turn
// the direction of what stands around it.

/**
 * Control characters, line ends, marks that turn the direction of writing, and what takes no room: blanks without width, marks of
 * annotations, tags (by the first half of their pair). Joiners stay: emoji and several scripts are written with them.
 */
export const HIDDEN =
  "\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb\\udb40";
