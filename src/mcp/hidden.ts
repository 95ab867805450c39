// Takes what a server is sent as a secret out of what it says: some echo their headers, and errors name the token that they refuse. Members
// use the servers of their organization and are not to have its keys. Pure.
import { listSpellings } from "#base/secrets/spellings.ts";

/** Returns the same value without secrets in any of its texts, names of members included. */
export type Hide = <T>(value: T) => T;

const HIDDEN = "[hidden]";
/** Shorter ones stand in any text by chance. */
const LEAST = 8;

export const hidesNothing: Hide = (value) => value;

/** `headers`: what the server is sent. */
export const hidesHeaders = (headers: Readonly<Record<string, string>>): Hide => {
  const secrets = Object.values(headers).flatMap(toParts);
  const spellings = [...new Set(secrets.filter(({ length }) => length >= LEAST).flatMap(listSpellings))]
    .filter(({ length }) => length >= LEAST)
    .sort((a, b) => b.length - a.length);
  if (spellings.length === 0) return hidesNothing;
  const inText = (text: string): string =>
    spellings.reduce((hidden, one) => (hidden.includes(one) ? hidden.replaceAll(one, HIDDEN) : hidden), text);
  const deep = (value: unknown): unknown => {
    if (typeof value === "string") return inText(value);
    if (Array.isArray(value)) return value.map(deep);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [inText(name), deep(inner)]));
  };
  return <T>(value: T): T => deep(value) as T;
};

/** The value, what stands behind its scheme, and the password of Basic. */
const toParts = (value: string): string[] => {
  const [, scheme = "", token = ""] = /^(\w+) +(\S+)$/.exec(value) ?? [];
  const pair = scheme.toLowerCase() === "basic" ? Buffer.from(token, "base64").toString() : "";
  return [value, token, pair, pair.slice(pair.indexOf(":") + 1)];
};
