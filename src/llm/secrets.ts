// Takes secrets out of what a provider said before anyone sees it: the key itself, and whatever looks like one. Pure.

const LIKE_A_KEY = /\b(?:sk|pk|rk|xai|gsk|key|AIza)[-_]?[A-Za-z0-9_*.-]{12,}/g;
const BEARER = /\b(bearer|basic|x-api-key:?)\s+[^\s"',;]{6,}/gi;
const HIDDEN = "[hidden]";

/** The same text without `secret` and without anything that looks like an API key. */
export const withoutSecrets = (text: string, secret: string): string => {
  const without = secret.length >= 4 ? text.replaceAll(secret, HIDDEN) : text;
  return without.replace(BEARER, `$1 ${HIDDEN}`).replace(LIKE_A_KEY, HIDDEN);
};
