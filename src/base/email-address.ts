// What counts as an email address, in requests, settings, the command line, and what providers say (rule ID-27).
import { HIDDEN } from "./hidden-characters.ts";

export const MAX_EMAIL_LENGTH = 254;

/** Joiners, too: an address that differs from another one by them alone looks the same. The rest ends an address in a header of a mail. */
const OUTSIDE = `\\s${HIDDEN}\\u200c\\u200d\\ufe00-\\ufe0f@<>()\\[\\]\\\\,;:"`;

/** Dots of other scripts, which names of hosts take for a dot. One at the end changes nothing either, so that it would make a twin of an address. */
const OTHER_DOTS = "\\u3002\\uff0e\\uff61";

export const EMAIL_PATTERN = `^[^${OUTSIDE}]+@[^${OUTSIDE}${OTHER_DOTS}]*[^${OUTSIDE}${OTHER_DOTS}.]$`;

export const EMAIL_MISTAKE =
  "must be an email address such as ada@example.com, without control characters, invisible characters, bidirectional marks, or a trailing dot";

const pattern = new RegExp(EMAIL_PATTERN);

export const isEmailAddress = (text: string): boolean => text.length <= MAX_EMAIL_LENGTH && pattern.test(text);

/** Returns whether the address is in NFKC. One with the Kelvin sign in place of "K" isn't: NFKC makes another address of it. */
export const hasOneForm = (text: string): boolean => text.normalize("NFKC") === text;

/**
 * Returns the form in which addresses are stored and compared: NFKC, with letters beyond ASCII in lower case. ASCII letters stay as they are
 * written; the database ignores their case.
 */
export const normalizeEmail = (text: string): string =>
  text
    .normalize("NFKC")
    .replace(/[^\0-\x7f]+/g, (letters) => letters.toLowerCase())
    .normalize("NFKC");

/** Returns what two addresses of one person have in common. */
export const emailKey = (text: string): string => normalizeEmail(text).toLowerCase();
