// The redirect target after sign-in, which is never another site (rule PG-3).

/** Returns the full URL on `origin` that the query names as `redirect`, or the home page. */
export const getRedirectTarget = (query: string, origin: string): string => {
  const requested = new URLSearchParams(query).get("redirect") ?? "/";
  const url = URL.canParse(requested, origin) ? new URL(requested, origin) : undefined;
  // The full URL, because a path alone may name another site: that of /..//evil.example is //evil.example.
  return requested.startsWith("/") && url?.origin === origin ? url.href : `${origin}/`;
};
