// Parses and formats the search query `q` of the API: `key:value` terms and words. Pure.

export type Term = { readonly key: string; readonly value: string };

/** Splits a query into terms with a key, and words. */
export const parseQuery = (q: string): { terms: Term[]; words: string[] } => {
  const parts = q.match(/[^\s"]*"[^"]*"?|[^\s"]+/g) ?? [];
  const terms: Term[] = [];
  const words: string[] = [];
  for (const part of parts) {
    const colon = part.indexOf(":");
    if (colon <= 0) words.push(part.replaceAll('"', ""));
    else terms.push({ key: part.slice(0, colon).toLowerCase(), value: part.slice(colon + 1).replaceAll('"', "") });
  }
  return { terms, words };
};

/** Formats the query. */
export const formatQuery = ({ terms, words }: { terms: readonly Term[]; words: readonly string[] }): string =>
  [...terms.map(({ key, value }) => `${key}:${/\s/.test(value) ? `"${value}"` : value}`), ...words].join(" ");
