// Restricts queries to some shards: in a cluster, each node looks only for entities of its own shards (src/base/shards.ts).

import type { Column } from "drizzle-orm";
import { type SQL, sql } from "drizzle-orm";
import type { ShardNumbers } from "#base/shards.ts";

/** {parts}: a JSON array of shard numbers. */
export const isAmongShards = (part: Column | SQL): SQL =>
  sql`${part} in (select cast(value as integer) from json_each(${sql.placeholder("parts")}))`;

/** Combines a query for everything and one for some shards. A node with all shards runs the same query as a single server. */
export const forShards =
  <T>(all: (args: Record<never, never>) => T, some: (args: { parts: string }) => T) =>
  (shards: ShardNumbers): T =>
    shards === undefined ? all({}) : some({ parts: JSON.stringify(shards) });

/** The same for queries with additional parameters. */
export const withShards =
  <V extends Record<string, unknown>, T>(all: (args: V) => T, some: (args: V & { parts: string }) => T) =>
  (args: V, shards: ShardNumbers): T =>
    shards === undefined ? all(args) : some(Object.assign({ parts: JSON.stringify(shards) }, args));
