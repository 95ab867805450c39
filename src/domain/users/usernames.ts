// User names: those that would be mistaken for a path of the API, and names as ours are made from what people are called elsewhere.
import { invalidField } from "#base/errors.ts";

const RESERVED = new Set([
  ...["me", "first", "login", "logout", "authmethods", "validate-password", "otp", "roles", "oauth2", "oidc"],
]);

/** Two less than the longest: a number may follow. */
const MAX_LENGTH = 28;

/** Letters that do not come apart into a letter and a mark. */
const LETTERS: Readonly<Record<string, string>> = {
  ß: "ss",
  æ: "ae",
  œ: "oe",
  ø: "o",
  ð: "d",
  þ: "th",
  ł: "l",
  đ: "d",
  ħ: "h",
  ı: "i",
  ŋ: "n",
  ŧ: "t",
};

/** Whether a path of the API does not need the name for itself. */
export const isFreeName = (username: string): boolean => !RESERVED.has(username.toLowerCase());

/** Throws 400 for a name that a path needs for itself. The form of the name is checked by the schema. */
export const checkUsername = (username: string): void => {
  if (!isFreeName(username)) throw invalidField("username", "This name is reserved.");
};

/** Returns a user name made from any text, such as `jurgen-muller` from `Jürgen Müller`; empty when no letter of it can be written so. */
export const toUsername = (text: string): string =>
  text
    .normalize("NFKD")
    .toLowerCase()
    .replace(/\p{M}+/gu, "")
    .replace(/[^\p{ASCII}]/gu, (letter) => LETTERS[letter] ?? " ")
    .replace(/['.]/g, (mark) => (mark === "'" ? "" : "-"))
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, MAX_LENGTH)
    .replace(/-+$/, "");
