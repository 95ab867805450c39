// Username rules: names reserved for API paths, and names derived from external ones.
import { invalidField } from "#base/errors.ts";

const RESERVED = new Set([
  ...["me", "first", "login", "logout", "authmethods", "validate-password", "otp", "roles", "oauth2", "oidc"],
]);

/** Two below the maximum, because a number may be appended. */
const MAX_LENGTH = 28;

/** Letters that Unicode does not decompose into a letter and a mark. */
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

/** Returns whether the name is not reserved for an API path. */
export const isFreeName = (username: string): boolean => !RESERVED.has(username.toLowerCase());

/** Throws 400 for a reserved name. The format is checked by the schema. */
export const checkUsername = (username: string): void => {
  if (!isFreeName(username)) throw invalidField("username", "This name is reserved.");
};

/** Returns a username derived from any text, such as `jurgen-muller` from `Jürgen Müller`; empty when no letter can be converted. */
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
