// A batch that waits for a writer, and the memory that it uses.
import type { CommitSpan } from "./commit-span.ts";
import type { Statement } from "./sql.ts";

export type Pending = {
  readonly batch: readonly Statement[];
  readonly rows: number;
  readonly bytes: number;
  /** The batch's shard, in a cluster. */
  readonly part?: number | undefined;
  /** As in `Store.commit`. */
  readonly about?: string | undefined;
  /** Set if spans are enabled. */
  readonly span?: CommitSpan | undefined;
  resolve(): void;
  reject(error: unknown): void;
};

/** Bytes counted per row in addition to its values, so that rows without values also count. */
const ROW_BYTES = 32;

/** Returns the number of rows of a batch, and its approximate size in bytes. */
export const measureBatch = (batch: readonly Statement[]): Pick<Pending, "rows" | "bytes"> => {
  let rows = 0;
  let bytes = 0;
  for (const statement of batch) {
    rows += statement.rows.length;
    for (const row of statement.rows) {
      bytes += ROW_BYTES;
      for (const value of row) {
        bytes += typeof value === "string" ? value.length : value instanceof Uint8Array ? value.byteLength : 8;
      }
    }
  }
  return { rows, bytes };
};

/** A writer's counters and its observer, for metrics. */
export type CommitFigures = {
  readonly counts: { readonly groups: number; readonly batches: number };
  /** `flushed` gets the duration of a group, including its flush, and its rows. */
  watch: { now(): number; flushed(ms: number, rows: number): void } | undefined;
};
