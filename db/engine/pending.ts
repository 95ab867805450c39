// A batch that waits for a writer, and what it costs to let it wait.
import type { CommitSpan } from "./commit-span.ts";
import type { Statement } from "./sql.ts";

export type Pending = {
  readonly batch: readonly Statement[];
  readonly rows: number;
  readonly bytes: number;
  /** Of a cluster: of which part it is. */
  readonly part?: number | undefined;
  /** As of `Store.commit`. */
  readonly about?: string | undefined;
  /** Where spans are wanted. */
  readonly span?: CommitSpan | undefined;
  resolve(): void;
  reject(error: unknown): void;
};

/** What a waiting row costs alongside its values, so that rows without values count too. */
const ROW_BYTES = 32;

/** Rows of a batch, and roughly the bytes that it holds. */
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

/** What a writer counts, and who hears of each group: for figures. */
export type CommitFigures = {
  readonly counts: { readonly groups: number; readonly batches: number };
  /** `flushed` hears how long a group took, its flush included, and of how many rows. */
  watch: { now(): number; flushed(ms: number, rows: number): void } | undefined;
};
