// Makes untrusted text safe to display: characters that move the cursor, are invisible or reorder letters are replaced by their escape
// codes. Pure. Used by the command line, the pages and notifications.

const code = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;

/**
 * Returns text with escapes such as `\u202e` in place of characters that move the cursor or reorder letters; newlines and tabs stay. JSON
 * keeps its meaning, because these escapes are valid in JSON.
 */
export const escapeHidden = (text: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is shown as codes
  text.replaceAll(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, code);

/** Like `escapeHidden`, and also escapes zero-width characters and soft hyphens. For text that a person makes a decision about. */
export const escapeInvisible = (text: string): string =>
  escapeHidden(text.replaceAll(/[\u00ad\u200b-\u200d\u2060-\u2065\ufeff]/g, code));

/** Like `escapeInvisible`, and turns tabs into spaces. */
export const escapeAllHidden = (text: string): string => escapeInvisible(text.replaceAll("\t", "    "));
