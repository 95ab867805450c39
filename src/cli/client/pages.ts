// Lists that the server gives in pages, whole.
import type { Client } from "#src/client.ts";

const PAGE = 100;

/** Every item of a list that takes `limit` and `offset`; none twice, although the order may change between two pages. */
export const allPages = async <T extends { id: string }, Key extends string>(
  client: Client,
  path: string,
  key: Key,
  query: Readonly<Record<string, string>> = {},
): Promise<T[]> => {
  const found = new Map<string, T>();
  for (let offset = 0; ; offset += PAGE) {
    const search = new URLSearchParams({ ...query, limit: String(PAGE), offset: String(offset) });
    const items = ((await client.get(`${path}?${search}` as string)) as Record<Key, T[]>)[key];
    for (const one of items) found.set(one.id, one);
    if (items.length < PAGE) return [...found.values()];
  }
};
