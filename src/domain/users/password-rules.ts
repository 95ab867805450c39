// What a new password must be like (rule ID-20): long, or a passphrase that takes long to guess, and not made of what everyone tries or
// of what is known of its user. Pure; how long it takes to guess comes from strength.ts.

/** Below this only a password that is far from guessable will do. */
const LONG = 12;
const SHORTEST = 8;
const LONGEST = 128;
/** Guesses a password takes, as a power of ten: of a long one, and of a short one. */
const GUESSES_OF_LONG = 8;
const GUESSES_OF_SHORT = 10;
/** Below this it is in the lists of everyone. */
const GUESSES_OF_COMMON = 6;

/** Whose password it is to be, as far as that is known. */
export type PasswordOwner = { readonly email?: string; readonly username?: string; readonly name?: string };

/** What is wrong with it at first sight, in words for people; empty when nothing is. */
export const shapeProblem = (password: string, owner: PasswordOwner): string => {
  const length = [...password].length;
  if (length < SHORTEST) return `Use at least ${LONG} characters.`;
  if (length > LONGEST) return `Use at most ${LONGEST} characters.`;
  if (new Set(password).size < 4) return "Use more different characters.";
  return isOwnName(password, owner)
    ? "Don't base your password on your name, your email address or the name of this program."
    : "";
};

/** What is wrong with a password that takes 10^`guesses` guesses. */
export const strengthProblem = (password: string, guesses: number): string => {
  const isLong = [...password].length >= LONG;
  if (guesses >= (isLong ? GUESSES_OF_LONG : GUESSES_OF_SHORT)) return "";
  return isLong || guesses < GUESSES_OF_COMMON
    ? "This password is easy to guess. Use several words that do not belong together."
    : `Use at least ${LONG} characters, or something that is much harder to guess.`;
};

/** A name that everyone who tries passwords here thinks of. */
const PRODUCT = "slipway";

/** Without the names there is too little left. */
const isOwnName = (password: string, { email = "", username = "", name = "" }: PasswordOwner): boolean => {
  const words = [PRODUCT, email, ...email.split(/[^\p{L}\p{N}]+/u), username, name, ...name.split(/\s+/)]
    .map((word) => word.toLowerCase())
    .filter((word) => word.length >= 3)
    .sort((a, b) => b.length - a.length);
  const whole = password.toLowerCase();
  const rest = words.reduce((text, word) => text.replaceAll(word, ""), whole);
  return rest !== whole && [...rest].length < SHORTEST;
};
