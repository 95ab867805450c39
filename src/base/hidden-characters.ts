// The characters that hide parts of a text or change its direction, as the content of a regular expression's character class. Names, titles
// and addresses must not contain them (src/schema/text.ts); other texts show them as escape codes (./visible-text.ts).

/** Characters that move the cursor, end a line or reorder letters, except for those below U+0020. */
export const REORDERING = "\\u007f-\\u009f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069";

/**
 * Characters without a visible form: soft hyphens, zero-width spaces, annotation marks, and tags, which begin with the same half of a
 * surrogate pair. Joiners are not included, because emoji and several scripts need them.
 */
export const INVISIBLE = "\\u00ad\\u180e\\u200b\\u2060-\\u2065\\u206a-\\u206f\\ufeff\\ufff9-\\ufffb\\udb40";

/** Characters that join their neighbors. Invisible, but allowed in names. */
export const JOINERS = "\\u200c\\u200d";

/** All characters that names, titles and addresses must not contain. */
export const HIDDEN = `\\u0000-\\u001f${REORDERING}${INVISIBLE}`;
