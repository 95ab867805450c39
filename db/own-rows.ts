// The rows that this server works on: all rows, or in a cluster the rows of its shards (src/base/shards.ts). Keepers pass `OwnRows` to
// queries and need not know its content.
import { type Column, type SQL, sql } from "drizzle-orm";
import { ALL_SHARDS, FIRST_SHARD, SHARD_COUNT, type Shards } from "#base/shards.ts";
import type { Statement } from "./engine/sql.ts";
import type { Store } from "./engine/store.ts";

/** Returns whether another node is to take over the rows with this `part`. */
export type IsLeaving = (part: number) => boolean;

export class OwnRows {
  /** The shards of the rows; undefined means all rows, so queries need no condition. */
  readonly #parts: readonly number[] | undefined;

  constructor(parts?: readonly number[]) {
    this.#parts = parts?.length === SHARD_COUNT ? undefined : parts;
  }

  /** Whether these are all rows, as on a single server. No other node has had any of them before. */
  get areAll(): boolean {
    return this.#parts === undefined;
  }

  has(part: number | "deployment"): boolean {
    return this.#parts?.includes(part === "deployment" ? FIRST_SHARD : part) ?? true;
  }

  /** The parameter of `isOwn`; undefined for all rows. */
  get parts(): string | undefined {
    return this.#parts && JSON.stringify(this.#parts);
  }

  /** Commits one statement for all rows, or one for each part, because another node may have taken over some of them. */
  async commit(store: Pick<Store, "commit">, buildStatement: (part?: number) => Statement): Promise<void> {
    if (this.#parts === undefined) await store.commit([buildStatement()]);
    else await Promise.all(this.#parts.map((part) => store.commit([buildStatement(part)], { of: part })));
  }
}

export const ALL_ROWS = new OwnRows();

/** Returns the rows that a node works on now. */
export const findOwnRows = (shards: Shards): OwnRows =>
  shards === ALL_SHARDS
    ? ALL_ROWS
    : new OwnRows(Array.from({ length: SHARD_COUNT }, (_, shard) => shard).filter((shard) => shards.has(shard)));

/** The condition of a query that a row belongs to this node, by its `part`. */
export const isOwn = (part: Column | SQL): SQL =>
  sql`${part} in (select cast(value as integer) from json_each(${sql.placeholder("parts")}))`;

/** Combines a query for all rows with one for the rows of this node. A node with all rows runs the same query as a single server. */
export const forOwnRows =
  <V extends Record<string, unknown>, T>(all: (args: V) => T, some: (args: V & { parts: string }) => T) =>
  (args: V, { parts }: OwnRows): T =>
    parts === undefined ? all(args) : some(Object.assign({ parts }, args));
