// Rules for new passwords (rule ID-20): long, or hard to guess, and not based on common passwords or the user's own data. Pure; the
// strength estimate comes from strength.ts.

/** A shorter password must be especially hard to guess. */
const LONG_LENGTH = 12;
const MIN_LENGTH = 8;
const MAX_LENGTH = 128;
/** Required guesses as a power of ten, for a long and for a short password. */
const MIN_GUESSES_LONG = 8;
const MIN_GUESSES_SHORT = 10;
/** Below this, the password is in common password lists. */
const MIN_GUESSES_UNCOMMON = 6;

/** The future owner of the password, as far as known. */
export type PasswordOwner = { readonly email?: string; readonly username?: string; readonly name?: string };

/** Returns an obvious problem, for people; empty if none exists. */
export const findShapeProblem = (password: string, owner: PasswordOwner): string => {
  const length = [...password].length;
  if (length < MIN_LENGTH) return `Use at least ${LONG_LENGTH} characters.`;
  if (length > MAX_LENGTH) return `Use at most ${MAX_LENGTH} characters.`;
  if (new Set(password).size < 4) return "Use more different characters.";
  return isOwnName(password, owner)
    ? "Don't base your password on your name, your email address or the name of this program."
    : "";
};

/** Returns the problem with a password that takes 10^`guesses` guesses. */
export const findStrengthProblem = (password: string, guesses: number): string => {
  const isLong = [...password].length >= LONG_LENGTH;
  if (guesses >= (isLong ? MIN_GUESSES_LONG : MIN_GUESSES_SHORT)) return "";
  return isLong || guesses < MIN_GUESSES_UNCOMMON
    ? "This password is easy to guess. Use several words that do not belong together."
    : `Use at least ${LONG_LENGTH} characters, or something that is much harder to guess.`;
};

/** A name that everyone who guesses passwords here tries. */
const PRODUCT = "slipway";

/** Returns whether too little remains without the user's names. */
const isOwnName = (password: string, { email = "", username = "", name = "" }: PasswordOwner): boolean => {
  const words = [PRODUCT, email, ...email.split(/[^\p{L}\p{N}]+/u), username, name, ...name.split(/\s+/)]
    .map((word) => word.toLowerCase())
    .filter((word) => word.length >= 3)
    .sort((a, b) => b.length - a.length);
  const original = password.toLowerCase();
  const rest = words.reduce((text, word) => text.replaceAll(word, ""), original);
  return rest !== original && [...rest].length < MIN_LENGTH;
};
