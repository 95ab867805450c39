// What a group of batches sends. Log lines, which come as a row or a few from many agents at once, are gathered into one statement behind
// all others: each statement costs the node and the database about as much as its row does. Pure.
import type { Pending } from "../engine/pending.ts";
import type { Statement, Value } from "../engine/sql.ts";
import { insertedRows, type Sent, toSent, unnested } from "./bind.ts";

/** The table whose rows are gathered. Nothing refers to it, so its rows may come last. */
const GATHERED = "agent_logs";
/** Of fewer rows each is sent in its place. */
const FEWEST = 8;

/** `of`: the batch that is refused when this is; undefined for rows of several. */
export type Outgoing = { readonly sent: Sent; readonly of?: Pending };

/** `isGathered` false: every statement in its place, so that a refusal tells of which batch it is. */
export const gatherOutgoing = (group: readonly Pending[], isGathered: boolean): Outgoing[] => {
  const lines = isGathered ? gatheredLines(group) : undefined;
  const outgoing: Outgoing[] = group.flatMap((of) =>
    of.batch
      .filter((statement) => !lines || !toInsertedRows(statement))
      .flatMap(toSent)
      .map((sent) => ({ sent, of })),
  );
  if (lines) outgoing.push({ sent: lines });
  return outgoing;
};

/** One statement for all lines of the group; undefined where there are few, or where another statement touches them. */
const gatheredLines = (group: readonly Pending[]): Sent | undefined => {
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
  return columns !== undefined && rows.length >= FEWEST ? unnested(GATHERED, columns, rows) : undefined;
};

/** What a statement says of itself; one that says nothing touches everything. */
const touchesLines = ({ touches }: Statement): boolean => touches?.includes("lines") ?? true;

const toInsertedRows = (statement: Statement) => {
  if (statement.expect !== undefined || !touchesLines(statement)) return undefined;
  const found = insertedRows(statement);
  return found?.table === GATHERED ? found : undefined;
};
