// Loads paginated lists completely.
import { NIL_UUID } from "#base/ids.ts";
import type { Workspace, Workspaces } from "#schema/workspaces/workspace.ts";
import type { Client } from "#src/client.ts";

const PAGE_SIZE = 100;

/** Returns all items of a list that takes `limit` and `offset`, without duplicates, even if the order changes between pages. */
export const loadAllPages = async <T extends { id: string }, Key extends string>(
  client: Client,
  path: string,
  key: Key,
  query: Readonly<Record<string, string>> = {},
): Promise<T[]> => {
  const found = new Map<string, T>();
  for (let offset = 0; ; offset += PAGE_SIZE) {
    const search = new URLSearchParams({ ...query, limit: String(PAGE_SIZE), offset: String(offset) });
    const items = ((await client.get(`${path}?${search}` as string)) as Record<Key, T[]>)[key];
    for (const one of items) found.set(one.id, one);
    if (items.length < PAGE_SIZE) return [...found.values()];
  }
};

/** Returns every matching workspace once, even if workspaces start and stop during the request, in the order of pages by `offset`. */
export const loadAllWorkspaces = async (client: Client, q: string): Promise<Workspace[]> => {
  const found = new Map<string, Workspace>();
  for (let after_id = NIL_UUID; ; ) {
    const search = new URLSearchParams({ q, limit: String(PAGE_SIZE), after_id });
    const { workspaces } = await client.get<Workspaces>(`/api/v2/workspaces?${search}`);
    const previousCount = found.size;
    for (const one of workspaces) found.set(one.id, one);
    // A server without this cursor returns its first page every time.
    if (workspaces.length < PAGE_SIZE || found.size === previousCount)
      return [...found.values()].sort(compareWorkspaces);
    after_id = workspaces.at(-1)?.id ?? after_id;
  }
};

const compareWorkspaces = (a: Workspace, b: Workspace): number =>
  Number(b.favorite) - Number(a.favorite) ||
  Number(b.latest_build.status === "running") - Number(a.latest_build.status === "running") ||
  compareText(a.owner_name.toLowerCase(), b.owner_name.toLowerCase()) ||
  compareText(a.name.toLowerCase(), b.name.toLowerCase());

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
