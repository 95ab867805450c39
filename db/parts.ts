// What is of some parts: where several nodes share a deployment, each looks only for what is of its own (src/base/parts.ts).

import type { Column } from "drizzle-orm";
import { type SQL, sql } from "drizzle-orm";
import type { PartNumbers } from "#base/parts.ts";

/** {parts}, a JSON array of their numbers. */
export const isAmongParts = (part: Column | SQL): SQL =>
  sql`${part} in (select cast(value as integer) from json_each(${sql.placeholder("parts")}))`;

/** One query for all there is, and one for what is of some parts: where a node has all, it asks what a single server asks. */
export const ofParts =
  <T>(all: (args: Record<never, never>) => T, some: (args: { parts: string }) => T) =>
  (parts: PartNumbers): T =>
    parts === undefined ? all({}) : some({ parts: JSON.stringify(parts) });

/** The same for queries with values of their own. */
export const withParts =
  <V extends Record<string, unknown>, T>(all: (args: V) => T, some: (args: V & { parts: string }) => T) =>
  (args: V, parts: PartNumbers): T =>
    parts === undefined ? all(args) : some(Object.assign({ parts: JSON.stringify(parts) }, args));
