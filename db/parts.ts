// Restricts queries to some shards: in a cluster, each node looks only for entities of its own shards (src/base/parts.ts).

import type { Column } from "drizzle-orm";
import { type SQL, sql } from "drizzle-orm";
import type { PartNumbers } from "#base/parts.ts";

/** {parts}: a JSON array of shard numbers. */
export const isAmongParts = (part: Column | SQL): SQL =>
  sql`${part} in (select cast(value as integer) from json_each(${sql.placeholder("parts")}))`;

/** Combines a query for everything and one for some shards. A node with all shards runs the same query as a single server. */
export const forParts =
  <T>(all: (args: Record<never, never>) => T, some: (args: { parts: string }) => T) =>
  (parts: PartNumbers): T =>
    parts === undefined ? all({}) : some({ parts: JSON.stringify(parts) });

/** The same for queries with additional parameters. */
export const withParts =
  <V extends Record<string, unknown>, T>(all: (args: V) => T, some: (args: V & { parts: string }) => T) =>
  (args: V, parts: PartNumbers): T =>
    parts === undefined ? all(args) : some(Object.assign({ parts: JSON.stringify(parts) }, args));
