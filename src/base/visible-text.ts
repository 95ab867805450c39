// Text that others have written, shown so that it cannot look like something else: what moves the cursor, is invisible or reorders letters
// stands as its code. Pure. Used by the command line, the pages and notifications.

const code = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;

/**
 * Returns text with codes such as `\u202e` in place of what moves the cursor or reorders letters; lines and tabs stay. JSON means the same
 * afterwards, since it has these codes, too.
 */
export const visible = (text: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is shown as codes
  text.replaceAll(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, code);

/** Returns the same, also for characters without a width, and tabs as spaces: for what a person decides on. */
export const unmistakable = (text: string): string =>
  visible(text.replaceAll("\t", "    ")).replaceAll(/[\u200b-\u200d\u2060-\u2065\ufeff]/g, code);
