// Token lifetimes (facts/platform 8.2). Numbers are nanoseconds; a value meant as seconds would create a token that expires immediately, so
// anything under a second is rejected with a hint (rule ID-9). Pure.
import { invalidField } from "#base/errors.ts";

const DEFAULT_SECONDS = 168 * 3600;
const MAX_SECONDS = 876_600 * 3600;
/** An owner's token is more valuable to an attacker. */
const MAX_OWNER_SECONDS = 168 * 3600;

const NANOSECONDS = 1_000_000_000;
const UNITS: Record<string, number> = {
  d: 86_400,
  h: 3600,
  m: 60,
  s: 1,
  ms: 0.001,
  us: 0.000_001,
  ns: 1 / NANOSECONDS,
};

/** Returns the maximum lifetime in seconds of a token of a user with these site roles. */
export const getMaxSeconds = (roles: readonly string[]): number =>
  roles.includes("owner") ? MAX_OWNER_SECONDS : MAX_SECONDS;

export const toNanoseconds = (seconds: number): number => seconds * NANOSECONDS;

/**
 * Returns the requested lifetime in whole seconds. It may not exceed `secondsLeft`, the remaining seconds of the token that sends the
 * request. Throws 400.
 */
export const parseLifetimeSeconds = (
  lifetime: number | string | undefined,
  roles: readonly string[],
  secondsLeft = Number.POSITIVE_INFINITY,
): number => {
  const seconds = typeof lifetime === "string" ? parseDuration(lifetime) : (lifetime ?? 0) / NANOSECONDS;
  if (seconds === 0) return Math.min(DEFAULT_SECONDS, secondsLeft);
  if (!(seconds >= 1)) {
    throw invalidField(
      "lifetime",
      "A token must be valid for at least one second. Numbers are nanoseconds. Text such as 168h is also accepted.",
    );
  }
  const max = getMaxSeconds(roles);
  if (seconds > max) throw invalidField("lifetime", `Tokens of this user are valid for at most ${max / 3600} hours.`);
  if (seconds > secondsLeft) {
    const detail = `The token of this request ends in ${secondsLeft} seconds, and a token that it creates ends no later. Choose a shorter lifetime, or leave it out.`;
    throw invalidField("lifetime", detail);
  }
  return Math.floor(seconds);
};

const parseDuration = (text: string): number => {
  if (text === "" || text === "0") return 0;
  if (!/^(\d{1,15}(\.\d{1,9})?(d|h|ms|m|s|us|ns))+$/.test(text)) {
    throw invalidField("lifetime", `"${text}" is not a duration such as 168h, 30d or 1h30m.`);
  }
  let seconds = 0;
  for (const [, count, unit = ""] of text.matchAll(/(\d+(?:\.\d+)?)(d|h|ms|m|s|us|ns)/g)) {
    seconds += Number(count) * (UNITS[unit] ?? 0);
  }
  return seconds;
};
