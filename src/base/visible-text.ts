// Makes untrusted text safe to display: characters that move the cursor, are invisible or reorder letters are replaced by their escape
// codes. Pure. Used by the command line, the pages and notifications.
import { INVISIBLE, JOINERS, REORDERING } from "./hidden-characters.ts";

const CURSOR_OR_REORDERING = new RegExp(`[\\u0000-\\u0008\\u000b-\\u001f${REORDERING}]`, "g");
/** The second half of a surrogate pair is escaped with the first half. */
const UNSEEN = new RegExp(`[${INVISIBLE}${JOINERS}][\\udc00-\\udfff]?`, "g");

const escapeCharacters = (text: string): string =>
  text.replaceAll(/[\s\S]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);

/**
 * Returns text with escapes such as `\u202e` in place of characters that move the cursor or reorder letters; newlines and tabs stay. JSON
 * keeps its meaning, because these escapes are valid in JSON.
 */
export const escapeHidden = (text: string): string => text.replaceAll(CURSOR_OR_REORDERING, escapeCharacters);

/** Like `escapeHidden`, and also escapes invisible characters and joiners. For text that a person makes a decision about. */
export const escapeInvisible = (text: string): string => escapeHidden(text.replaceAll(UNSEEN, escapeCharacters));

/** Like `escapeInvisible`, and turns tabs into spaces. */
export const escapeAllHidden = (text: string): string => escapeInvisible(text.replaceAll("\t", "    "));
