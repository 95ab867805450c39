// Where the sign-in page goes afterwards. Never to another site (rule PG-3).

/** The address on `origin` that the query names as `redirect`, whole, else the home page. */
export const wayBack = (query: string, origin: string): string => {
  const asked = new URLSearchParams(query).get("redirect") ?? "/";
  const url = URL.canParse(asked, origin) ? new URL(asked, origin) : undefined;
  // Whole, because a path alone may name another site again: that of /..//evil.example is //evil.example.
  return asked.startsWith("/") && url?.origin === origin ? url.href : `${origin}/`;
};
