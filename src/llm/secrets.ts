// Takes secrets out of what a provider said before anyone sees it: the key itself, and whatever looks like one. Pure.

const LIKE_A_KEY = /\b(?:sk|pk|rk|xai|gsk|key|AIza)[-_]?[A-Za-z0-9_*.-]{12,}/g;
const BEARER = /\b(bearer|basic|x-api-key:?)\s+[^\s"',;]{6,}/gi;
const HIDDEN = "[hidden]";

/** Matches a text also where JSON writes some of its characters as escapes. */
const inJson = (secret: string): RegExp => {
  const units = Array.from({ length: secret.length }, (_, n) => secret.charAt(n));
  const either = units.map((unit) => {
    const code = unit.charCodeAt(0).toString(16).padStart(4, "0");
    const plain = unit.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
    return `(?:\\\\?${plain}|\\\\u${code.replace(/[a-f]/g, (letter) => `[${letter}${letter.toUpperCase()}]`)})`;
  });
  return new RegExp(either.join(""), "g");
};

/** The same text without `secret` and without anything that looks like an API key. */
export const withoutSecrets = (text: string, secret: string): string => {
  const plain = secret.length >= 4 ? text.replaceAll(secret, HIDDEN) : text;
  const without = secret.length >= 4 && plain.includes("\\") ? plain.replace(inJson(secret), HIDDEN) : plain;
  return without.replace(BEARER, `$1 ${HIDDEN}`).replace(LIKE_A_KEY, HIDDEN);
};
