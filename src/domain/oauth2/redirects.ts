// Where an application may have people sent back to (RFC 6749 3.1.2, RFC 8252 7 and 8.4): addresses match to the character, but for the
// port of a loopback address, which a program gets when it starts. Pure.
import { isUnsafeLink } from "#schema/text.ts";

const LOOPBACK = new Set(["127.0.0.1", "[::1]", "localhost"]);
/** What browsers handle themselves, or that is no program's. */
const NOT_OF_PROGRAMS =
  /^(?:https?|wss?|ftp|file|about|blob|data|javascript|vbscript|filesystem|view-source|chrome|resource|mailto|tel|sms|intent|ms-[a-z-]+|search-ms):$/i;

/** What the answer brings: an address that has it already could pass for one. */
const ANSWERS = ["code", "state", "iss", "error"];

const isLoopback = (url: URL): boolean => url.protocol === "http:" && LOOPBACK.has(url.hostname);

/** What is wrong with an address to be registered; undefined: nothing. Anyone who registers itself is sent back only to this machine's programs. */
export const redirectProblem = (text: string, isSelfRegistered: boolean): string | undefined => {
  if (!URL.canParse(text) || isUnsafeLink(text) || /[\s\\]/.test(text)) return "is no address";
  const url = new URL(text);
  if (text.includes("#")) return "must have no fragment";
  if (url.username !== "" || url.password !== "") return "must not hold a user name or password";
  if (ANSWERS.some((name) => url.searchParams.has(name))) return `must not hold ${ANSWERS.join(", ")} in its query`;
  if (isLoopback(url) || !NOT_OF_PROGRAMS.test(url.protocol)) return undefined;
  if (url.protocol === "https:" && !isSelfRegistered) return undefined;
  return isSelfRegistered
    ? "must be http on a loopback address, or of a scheme of its own"
    : "must be https, http on a loopback address, or of a scheme of its own";
};

/** A loopback address as it is written: before its port, and behind it. */
const LOOPBACK_TEXT = /^(http:\/\/(?:127\.0\.0\.1|\[::1\]|localhost))(?::\d{1,5})?((?:[/?].*)?)$/;

/** The same address without its port, to the character, when it is a loopback one. */
const withoutPort = (text: string): string | undefined => {
  const [, host, rest] = (URL.canParse(text) ? LOOPBACK_TEXT.exec(text) : undefined) ?? [];
  return host === undefined ? undefined : host + (rest || "/");
};

/** Whether an address of a request is one that was registered. */
export const isRegistered = (asked: string, registered: readonly string[]): boolean => {
  if (registered.includes(asked)) return true;
  const plain = withoutPort(asked);
  return plain !== undefined && registered.some((one) => withoutPort(one) === plain);
};

/** The address with more in its query; a value that is not there is left out. */
export const withParameters = (address: string, values: Readonly<Record<string, string | undefined>>): string => {
  const url = new URL(address);
  for (const [name, value] of Object.entries(values)) if (value !== undefined) url.searchParams.set(name, value);
  return url.href;
};

/** Where that is, for people to read. */
export const formatPlace = (address: string): string => {
  const url = new URL(address);
  if (isLoopback(url)) return `a program on your own machine (${url.host})`;
  return url.protocol === "https:" ? url.host : `the program on your own machine that opens ${url.protocol} links`;
};
