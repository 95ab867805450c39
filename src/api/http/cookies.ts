// Names and reads the cookies that sign a browser in. An app's host may share a domain with the access URL, and its pages may set cookies
// for that whole domain: none of them must be accepted as one of the server's (rule ID-31). Pure.
import { trimEnds } from "#base/text/trim.ts";

export const SESSION_COOKIE = "service_session_token";
/** The session on an app's own host. */
export const APP_COOKIE = "service_app_session";
/** The cookie of a started sign-in at a provider; the provider's ID is appended. */
export const STATE_COOKIE = "service_oidc_state_";
/** The session cookie's name in the API that Slipway is compatible with. */
export const UPSTREAM_COOKIE = "coder_session_token";

/**
 * Returns the name of a cookie that only the server's own host may set. Browsers enforce that for names with `__Host-`, which they accept
 * over https only.
 */
export const toHostCookie = (name: string, accessUrl: URL): string =>
  accessUrl.protocol === "https:" ? `__Host-${name}` : name;

/** Returns the attributes that every such cookie has. `max_age` is in seconds; 0 deletes the cookie. */
export const formatCookieAttributes = (accessUrl: URL, max_age: number): string =>
  `Path=/; HttpOnly; SameSite=Lax; Max-Age=${max_age}${accessUrl.protocol === "https:" ? "; Secure" : ""}`;

/** Removes spaces and tabs. `trim` also removes characters that browsers treat as part of a name. */
const trimBlanks = (text: string): string => trimEnds(text, " \t");

/** Returns the different values of the cookies of this name in a Cookie header. */
export const readCookies = (cookies: string, name: string): string[] => {
  const values = new Set<string>();
  for (const part of cookies.split(";")) {
    const separator = part.indexOf("=");
    if (separator > 0 && trimBlanks(part.slice(0, separator)) === name)
      values.add(trimBlanks(part.slice(separator + 1)));
  }
  values.delete("");
  return [...values];
};

/** Returns the value of a cookie; undefined if it is missing, or if there are two, because one of them may come from another host. */
export const readCookie = ({ headers }: Request, name: string): string | undefined => {
  const values = readCookies(headers.get("cookie") ?? "", name);
  return values.length === 1 ? values[0] : undefined;
};

/** Returns whether a cookie belongs to the server: apps neither get nor set it. */
export const isServerCookie = (name: string): boolean => {
  const unprefixed = name.replace(/^__(?:host|secure)-/i, "");
  return (
    unprefixed === SESSION_COOKIE ||
    unprefixed === APP_COOKIE ||
    unprefixed === UPSTREAM_COOKIE ||
    unprefixed.startsWith(STATE_COOKIE)
  );
};
