// Reads the rows of a table that are still readable. A damaged page hides a range of row numbers: reads forwards up to it and backwards
// from behind it, and bisects the gap for as long as that finds rows.
import type { Database, Statement } from "bun:sqlite";
import { isDamage } from "../engine/damage.ts";
import type { Value } from "../engine/sql.ts";

const MIN_ROWID = 0;
const MAX_ROWID = Number.MAX_SAFE_INTEGER;
/** Maximum consecutive ranges without a readable row before the rest of a gap is given up. */
const MAX_EMPTY_RANGES = 512;

export type HandleRow = (values: Value[]) => void;

/** Passes every readable row to `take`, and returns the number of remaining gaps. */
export const forEachReadableRow = (db: Database, table: string, columns: readonly string[], take: HandleRow): number =>
  new RowSalvager(db, table, columns, take).readAll();

type Range = { readonly from: number; readonly to: number };

class RowSalvager {
  readonly #handleRow: HandleRow;
  readonly #forwards: Statement;
  readonly #backwards: Statement;
  #rowCount = 0;

  constructor(db: Database, table: string, columns: readonly string[], take: HandleRow) {
    this.#handleRow = take;
    const shown = columns.map((column, i) => `"${column}" as c${i}`).join(", ");
    const rows = `select rowid as n, ${shown} from "${table}" where rowid between ? and ? order by rowid`;
    this.#forwards = db.query(rows);
    this.#backwards = db.query(`${rows} desc`);
  }

  readAll(): number {
    const gap = this.#readFromBothEnds({ from: MIN_ROWID, to: MAX_ROWID });
    if (gap === undefined) return 0;
    let gaps = 0;
    for (const range of splitGap(gap)) gaps += this.#bisect(range);
    return gaps;
  }

  /** Breadth first, so that a large gap is sampled everywhere before any part of it is searched in detail. */
  #bisect(whole: Range): number {
    const waiting = [whole];
    let gaps = 0;
    let emptyRanges = 0;
    for (let range = waiting.shift(); range !== undefined && emptyRanges < MAX_EMPTY_RANGES; range = waiting.shift()) {
      const before = this.#rowCount;
      const gap = this.#readFromBothEnds(range);
      emptyRanges = this.#rowCount > before ? 0 : emptyRanges + 1;
      if (gap === undefined) continue;
      if (gap.from === gap.to) gaps++;
      else {
        const middle = Math.floor((gap.from + gap.to) / 2);
        waiting.push({ from: gap.from, to: middle }, { from: middle + 1, to: gap.to });
      }
    }
    return gaps + waiting.length;
  }

  /** Returns the unread range in between, or undefined if everything was read. */
  #readFromBothEnds({ from, to }: Range): Range | undefined {
    const read = this.#read(this.#forwards, from, to);
    if (read === "all") return undefined;
    const start = read === undefined ? from : read + 1;
    const back = this.#read(this.#backwards, start, to);
    if (back === "all") return undefined;
    const end = back === undefined ? to : back - 1;
    return start > end ? undefined : { from: start, to: end };
  }

  /** Returns the number of the last row before the damage, or undefined if the damage hides the first one. */
  #read(statement: Statement, from: number, to: number): number | "all" | undefined {
    let last: number | undefined;
    try {
      for (const row of statement.iterate(from, to)) {
        const { n, ...values } = row as { n: number } & Record<string, Value>;
        this.#handleRow(Object.values(values));
        this.#rowCount++;
        last = n;
      }
      return "all";
    } catch (error) {
      if (!isDamage(error)) throw error;
      return last;
    }
  }
}

/** Row numbers are dense, so the beginning of a gap without a known end is searched more closely. */
function* splitGap({ from, to }: Range): Generator<Range> {
  for (let start = from, width = 1; start <= to; start += width, width *= 2)
    yield { from: start, to: Math.min(to, start + width - 1) };
}
