// Removes secrets from a provider's message before anyone sees it: the key itself, and anything that looks like one. Pure.

const KEY_PATTERN = /\b(?:sk|pk|rk|xai|gsk|key|AIza)[-_]?[A-Za-z0-9_*.-]{12,}/g;
const BEARER_PATTERN = /\b(bearer|basic|x-api-key:?)\s+[^\s"',;]{6,}/gi;
const HIDDEN = "[hidden]";
/** A shorter secret could be an ordinary word in another case. */
const MIN_ENCODED_CHARS = 8;

/** Matches a text in upper or lower case, also if JSON escapes some of its characters, or a URL encodes them, such as `%2D`. */
const toAnyEncoding = (secret: string): RegExp => {
  const units = Array.from({ length: secret.length }, (_, n) => secret.charAt(n));
  const patterns = units.map((unit) => {
    const code = unit.charCodeAt(0).toString(16).padStart(4, "0");
    const plain = unit.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
    return `(?:\\\\?${plain}|\\\\u${code}|%${code.slice(2)})`;
  });
  return new RegExp(patterns.join(""), "gi");
};

/** Returns the text without `secret` and anything that looks like an API key. */
export const maskSecrets = (text: string, secret: string): string => {
  const plain = secret.length >= 4 ? text.replaceAll(secret, HIDDEN) : text;
  const masked = secret.length >= MIN_ENCODED_CHARS ? plain.replace(toAnyEncoding(secret), HIDDEN) : plain;
  return masked.replace(BEARER_PATTERN, `$1 ${HIDDEN}`).replace(KEY_PATTERN, HIDDEN);
};
