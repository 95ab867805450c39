// Lists that the server gives in pages, whole.
import type { Workspace, Workspaces } from "#schema/workspaces/workspace.ts";
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

/** The cursor before every row of a list in the order of ids. */
const BEFORE_ALL = "00000000-0000-0000-0000-000000000000";

/** Every workspace that matches, each once although workspaces start and stop in the meantime, in the order that pages by `offset` have. */
export const allWorkspaces = async (client: Client, q: string): Promise<Workspace[]> => {
  const found = new Map<string, Workspace>();
  for (let after_id = BEFORE_ALL; ; ) {
    const search = new URLSearchParams({ q, limit: String(PAGE), after_id });
    const { workspaces } = await client.get<Workspaces>(`/api/v2/workspaces?${search}`);
    const known = found.size;
    for (const one of workspaces) found.set(one.id, one);
    // A server that knows no such cursor gives its first page again and again.
    if (workspaces.length < PAGE || found.size === known) return [...found.values()].sort(byPlace);
    after_id = workspaces.at(-1)?.id ?? after_id;
  }
};

const byPlace = (a: Workspace, b: Workspace): number =>
  Number(b.favorite) - Number(a.favorite) ||
  Number(b.latest_build.status === "running") - Number(a.latest_build.status === "running") ||
  compared(a.owner_name.toLowerCase(), b.owner_name.toLowerCase()) ||
  compared(a.name.toLowerCase(), b.name.toLowerCase());

const compared = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
