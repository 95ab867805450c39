// Removes the secrets that are sent to an MCP server from its messages. Some servers echo headers, or name the refused token in an error.
// Members use their organization's servers but must not see the keys. Pure.
import { listEncodings } from "#base/secrets/spellings.ts";

/** Returns the value without secrets in any of its texts, including member names. */
export type Hide = <T>(value: T) => T;

const HIDDEN = "[hidden]";
/** Shorter secrets could match unrelated texts. */
const MIN_SECRET_CHARS = 8;

export const hideNothing: Hide = (value) => value;

/** Returns a function that removes the values of these headers, which are sent to the server. */
export const hideHeaders = (headers: Readonly<Record<string, string>>): Hide => {
  const secrets = Object.values(headers).flatMap(toParts);
  const spellings = [...new Set(secrets.filter(({ length }) => length >= MIN_SECRET_CHARS).flatMap(listEncodings))]
    .filter(({ length }) => length >= MIN_SECRET_CHARS)
    .sort((a, b) => b.length - a.length);
  if (spellings.length === 0) return hideNothing;
  const hideInText = (text: string): string =>
    spellings.reduce((hidden, one) => (hidden.includes(one) ? hidden.replaceAll(one, HIDDEN) : hidden), text);
  const hideDeep = (value: unknown): unknown => {
    if (typeof value === "string") return hideInText(value);
    if (Array.isArray(value)) return value.map(hideDeep);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [hideInText(name), hideDeep(inner)]));
  };
  return <T>(value: T): T => hideDeep(value) as T;
};

/** Returns the value of a header, the part after the scheme, and for Basic the decoded pair and its password. */
const toParts = (value: string): string[] => {
  const [, scheme = "", token = ""] = /^(\w+) +(\S+)$/.exec(value) ?? [];
  const pair = scheme.toLowerCase() === "basic" ? Buffer.from(token, "base64").toString() : "";
  return [value, token, pair, pair.slice(pair.indexOf(":") + 1)];
};
