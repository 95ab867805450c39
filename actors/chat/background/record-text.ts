// Prepares a model call for recording: limits its size and removes text that looks like a credential. Pure.

import { replaceJsonWebTokens } from "#base/text/json-web-tokens.ts";

/** Maximum bytes of JSON for a recorded request or response. */
export const MAX_RECORD_BYTES = 65_536;
/** Leaves room because a secret's replacement can be longer than the secret. */
const FITTING_BYTES = MAX_RECORD_BYTES - 8_192;

/** Limits on text and list length, from generous to strict. The first set that makes the value fit is used. */
const BOUNDS = [
  [8_192, 200],
  [1_024, 100],
  [256, 40],
  [64, 16],
] as const;
const MAX_DEPTH = 12;
const REDACTED = "[redacted]";

const SECRET_NAME =
  /^(proxy-)?authorization$|^(set-)?cookie$|passw(or)?d|secret|credential|private[-_]?key|api[-_]?key|(^|[-_])token$|session[-_]?token/i;
const AUTHORIZATION = /\b(bearer|basic)\s+[\w+/=.~-]{8,}/gi;
const SECRETS: readonly (readonly [RegExp, string])[] = [
  [/\b(sk|rk|pk|ghp|gho|ghs|ghu|glpat|xox[abprs])[-_][\w-]{12,}/g, REDACTED],
  [/\bgithub_pat_\w{20,}/g, REDACTED],
  [/\bAIza[\w-]{30,}/g, REDACTED],
  [/\bAKIA[0-9A-Z]{16}\b/g, REDACTED],
  // An API key of this server.
  [/\b[\w]{10}-[\w]{22}\b/g, REDACTED],
  [/(:\/\/[^\s/:@]*:)[^\s/@]+@/g, `$1${REDACTED}@`],
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(-----END [A-Z ]*PRIVATE KEY-----|$)/g, REDACTED],
];

export const redactSecrets = (text: string): string =>
  SECRETS.reduce(
    (shown, [pattern, instead]) => shown.replace(pattern, instead),
    replaceJsonWebTokens(text.replace(AUTHORIZATION, `$1 ${REDACTED}`), REDACTED),
  );

/**
 * Returns the value for recording: cuts long texts at the end and long lists in the middle, and notes how much is missing. Then removes
 * secrets from the remaining content.
 */
export const toRecordable = (value: unknown): unknown => {
  for (const [maxLength, maxItems] of BOUNDS) {
    const shown = shrink(value, maxLength, maxItems, 0);
    if (Buffer.byteLength(JSON.stringify(shown) ?? "") <= FITTING_BYTES) return hideSecrets(shown) ?? null;
  }
  return { truncated: true };
};

const shrink = (value: unknown, maxLength: number, maxItems: number, depth: number): unknown => {
  if (typeof value === "string") {
    return value.length <= maxLength ? value : `${value.slice(0, maxLength)}… (${value.length} characters)`;
  }
  if (typeof value !== "object" || value === null) return value;
  if (depth >= MAX_DEPTH) return "[deeper]";
  const inner = (one: unknown) => shrink(one, maxLength, maxItems, depth + 1);
  if (Array.isArray(value)) {
    if (value.length <= maxItems) return value.map(inner);
    const firstCount = Math.ceil(maxItems / 4);
    const omittedCount = value.length - maxItems;
    return [
      ...value.slice(0, firstCount).map(inner),
      `[${omittedCount} more]`,
      ...value.slice(firstCount + omittedCount).map(inner),
    ];
  }
  const entries = Object.entries(value).slice(0, maxItems);
  return Object.fromEntries(entries.map(([name, one]) => [name.slice(0, maxLength), inner(one)]));
};

const hideSecrets = (value: unknown): unknown => {
  if (typeof value === "string") return redactSecrets(value);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(hideSecrets);
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [
      name,
      SECRET_NAME.test(name) && typeof one === "string" ? REDACTED : hideSecrets(one),
    ]),
  );
};
