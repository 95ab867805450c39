// Validates and normalizes email addresses for requests, settings, the command line, and identity providers (rule ID-27).
import { HIDDEN } from "./hidden-characters.ts";

export const MAX_EMAIL_LENGTH = 254;

/**
 * Includes joiners, because an address that differs only in them looks identical. The other characters would end the address in a mail
 * header.
 */
const EXCLUDED_CHARACTERS = `\\s${HIDDEN}\\u200c\\u200d\\ufe00-\\ufe0f@<>()\\[\\]\\\\,;:"`;

/**
 * Dots of other scripts, which hostnames treat as dots. A trailing dot does not change the host, so it would create a second form of the
 * same address.
 */
const OTHER_DOTS = "\\u3002\\uff0e\\uff61";

export const EMAIL_PATTERN = `^[^${EXCLUDED_CHARACTERS}]+@[^${EXCLUDED_CHARACTERS}${OTHER_DOTS}]*[^${EXCLUDED_CHARACTERS}${OTHER_DOTS}.]$`;

export const EMAIL_PROBLEM =
  "must be an email address such as ada@example.com, without control characters, invisible characters, bidirectional marks, or a trailing dot";

const pattern = new RegExp(EMAIL_PATTERN);

export const isEmailAddress = (text: string): boolean => text.length <= MAX_EMAIL_LENGTH && pattern.test(text);

/**
 * Returns whether the address is in NFKC. An address with the Kelvin sign in place of "K" is not: NFKC turns it into a different address.
 */
export const hasOneForm = (text: string): boolean => text.normalize("NFKC") === text;

/**
 * Returns the form in which addresses are stored and compared: NFKC, with non-ASCII letters in lower case. ASCII letters are kept, because
 * the database ignores their case.
 */
export const normalizeEmail = (text: string): string =>
  text
    .normalize("NFKC")
    .replace(/[^\0-\x7f]+/g, (letters) => letters.toLowerCase())
    .normalize("NFKC");

/** Returns a key that is equal for all spellings of an address. */
export const toEmailKey = (text: string): string => normalizeEmail(text).toLowerCase();
