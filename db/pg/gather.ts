// Determines the statements of a group of batches. Log lines, which arrive a few at a time from many agents, are combined into one
// statement after all others, because each separate statement costs about as much as storing its row. Pure.
import type { Pending } from "../engine/pending.ts";
import type { Statement, Value } from "../engine/sql.ts";
import { type BoundText, extractInsertedRows, toBoundTexts, toUnnestInsert } from "./bind.ts";

/** The table whose rows are combined. Nothing references it, so its rows may come last. */
const GATHERED_TABLE = "agent_logs";
/** Minimum number of rows that are combined. */
const MIN_GATHERED_ROWS = 8;

/** `source`: the batch that fails with this statement; undefined if its rows come from several batches. */
export type Outgoing = { readonly sent: BoundText; readonly source?: Pending };

/** `isGathered`: whether log lines are combined. If not, all statements keep their order, so that an error identifies its batch. */
export const gatherOutgoing = (group: readonly Pending[], isGathered: boolean): Outgoing[] => {
  const lines = isGathered ? gatherLines(group) : undefined;
  const outgoing: Outgoing[] = group.flatMap((source) =>
    source.batch
      .filter((statement) => !lines || !toInsertedRows(statement))
      .flatMap(toBoundTexts)
      .map((sent) => ({ sent, source })),
  );
  if (lines) outgoing.push({ sent: lines });
  return outgoing;
};

/** Returns one statement for all lines of the group; undefined for few lines, or if another statement touches them. */
const gatherLines = (group: readonly Pending[]): BoundText | undefined => {
  const rows: Value[][] = [];
  let columns: string | undefined;
  for (const { batch } of group) {
    for (const statement of batch) {
      const found = toInsertedRows(statement);
      if (!found) {
        if (touchesLines(statement)) return undefined;
        continue;
      }
      columns ??= found.columns;
      if (found.columns !== columns) return undefined;
      for (const row of found.rows) rows.push(row);
    }
  }
  return columns !== undefined && rows.length >= MIN_GATHERED_ROWS
    ? toUnnestInsert(GATHERED_TABLE, columns, rows)
    : undefined;
};

/** Returns whether a statement touches log lines. A statement without `touches` touches all data. */
const touchesLines = ({ touches }: Statement): boolean => touches?.includes("lines") ?? true;

const toInsertedRows = (statement: Statement) => {
  if (statement.expect !== undefined || !touchesLines(statement)) return undefined;
  const found = extractInsertedRows(statement);
  return found?.table === GATHERED_TABLE ? found : undefined;
};
