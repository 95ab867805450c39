// Characters that no name, title or address may contain, as the content of a regular expression's character class: they hide parts of a
// text or change its direction.

/**
 * Control characters, line ends, bidirectional marks, and invisible characters: zero-width spaces, annotation marks, tags (by the first
 * half of their surrogate pair). Joiners are allowed, because emoji and several scripts need them.
 */
export const HIDDEN =
  "\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb\\udb40";
