// Goes through the packed rows of use in a range, by block and user, together with what is not folded yet. Runs in reader Workers for
// the reports of insights (db/reports/usage/reports.ts): nothing here may be called on the main thread.
import type { Database } from "bun:sqlite";
import {
  ANY,
  BLOCK,
  type Block,
  blockIn,
  Detail,
  Digest,
  emptyBlock,
  idOf,
  MOST,
  medianOf,
  minutesOf,
  onesIn,
  packDetail,
  packDigest,
  templateIn,
  touches,
  unpackDetail,
  userIn,
} from "./block.ts";

/** Buckets [from, to); of all templates, or of those with these keys. */
export type Span = { readonly from: number; readonly to: number; readonly templates?: ReadonlySet<number> | undefined };

export type UsageRow = {
  readonly template: number;
  readonly digest: Digest;
  /** Every bucket. */
  detail(): Detail;
};

/** All that one user did in one block, by template. */
export class Group {
  readonly user: number;
  /** The first bucket of the block. */
  readonly start: number;
  /** Positions of the range in the block: [low, high). */
  readonly low: number;
  readonly high: number;
  readonly rows: readonly UsageRow[];

  constructor(id: number, rows: readonly UsageRow[], { from, to }: Span) {
    this.user = userIn(id);
    this.start = blockIn(id) * BLOCK;
    this.low = Math.max(0, from - this.start);
    this.high = Math.min(BLOCK, to - this.start);
    this.rows = rows;
  }

  /** The whole block is in the range. */
  get covered(): boolean {
    return this.low === 0 && this.high === BLOCK;
  }

  /** No two templates were used in the same bucket or one after the other, so that what they have can be added up. */
  get apart(): boolean {
    const { rows } = this;
    for (let i = 1; i < rows.length; i++) {
      const { bits } = (rows[i] as UsageRow).digest;
      for (let k = 0; k < i; k++) if (touches((rows[k] as UsageRow).digest.bits, bits)) return false;
    }
    return true;
  }
}

/** Rows read at once, and of one report: a deployment with more needs narrower questions. */
const PAGE = 20_000;
const MOST_ROWS = 2_000_000;

/**
 * Calls `see` for each user and block, by block. With `details` the rows of a block that is not wholly in the range come with their
 * details at once: a report that wants most of them would else ask for each by itself.
 */
export const walk = (db: Database, span: Span, see: (group: Group) => void, { details = false } = {}): void => {
  const { from, to, templates } = span;
  if (to <= from) return;
  const fresh = unfolded(db, span);
  const waiting = [...fresh.keys()].sort((a, b) => a - b);
  const find = db.query("select detail from usage_details where id = ?");
  const detailOf = (id: number): Uint8Array => {
    const [row] = find.values(id);
    return row ? (row[0] as Uint8Array) : packDetail(emptyBlock());
  };
  let rows: UsageRow[] = [];
  let last = -1;
  const close = (): void => {
    if (rows.length > 0) see(new Group(last, rows, span));
    rows = [];
  };
  const take = (id: number, digest?: Uint8Array, known?: Uint8Array): void => {
    const template = templateIn(id);
    if (templates && !templates.has(template)) return;
    if (last < 0 || Math.floor(id / 2 ** 18) !== Math.floor(last / 2 ** 18)) close();
    last = id;
    const more = fresh.get(id);
    if (more) {
      const block = unpackDetail(known ?? detailOf(id));
      addAll(block, more);
      rows.push({ template, digest: new Digest(packDigest(block)), detail: () => new Detail(packDetail(block)) });
    } else if (digest) {
      rows.push({ template, digest: new Digest(digest), detail: () => new Detail(known ?? detailOf(id)) });
    }
  };
  const plain = db.query(`select id, digest from usage_digests where id >= ? and id < ? order by id limit ${PAGE}`);
  const detailed = db.query(`
    select g.id, g.digest, d.detail from usage_digests g left join usage_details d on d.id = g.id
    where g.id >= ? and g.id < ? order by g.id limit ${PAGE}`);
  let read = 0;
  let w = 0;
  for (const [low, high, covered] of stretches(span)) {
    const [end, page] = [idOf(high, 0, 0), details && !covered ? detailed : plain];
    for (let next = idOf(low, 0, 0); ; ) {
      const found = page.values(next, end) as [number, Uint8Array, Uint8Array?][];
      for (const [id, digest, detail] of found) {
        while (w < waiting.length && (waiting[w] as number) < id) take(waiting[w++] as number);
        if (waiting[w] === id) w++;
        take(id, digest, detail ?? undefined);
      }
      read += found.length;
      if (found.length < PAGE) break;
      if (read > MOST_ROWS) throw new Error(`more than ${MOST_ROWS} rows of use`);
      next = (found.at(-1)?.[0] ?? end) + 1;
    }
  }
  while (w < waiting.length) take(waiting[w++] as number);
  close();
};

/** Blocks [low, high) of a span: those of which a part is in the range, and those in between that are covered. */
const stretches = ({ from, to }: Span): [low: number, high: number, covered: boolean][] => {
  const [first, last] = [Math.floor(from / BLOCK), Math.floor((to - 1) / BLOCK)];
  const [begun, ended] = [from % BLOCK !== 0, to % BLOCK !== 0];
  if (first === last) return [[first, last + 1, !begun && !ended]];
  const [low, high] = [begun ? first + 1 : first, ended ? last : last + 1];
  return [
    ...(begun ? [[first, low, false] as [number, number, boolean]] : []),
    [low, high, true],
    ...(ended ? [[high, last + 1, false] as [number, number, boolean]] : []),
  ];
};

type Fresh = {
  minutes: { at: number; app: number; mask: number }[];
  latencies: Map<number, { ms: number; count: number }[]>;
};

/** What is not folded yet, by the id of the row it will be folded into. */
const unfolded = (db: Database, { from, to }: Span): Map<number, Fresh> => {
  const fresh = new Map<number, Fresh>();
  const of = (bucket: number, user: number, template: number): Fresh => {
    const id = idOf(Math.floor(bucket / BLOCK), user, template);
    let one = fresh.get(id);
    if (!one) {
      one = { minutes: [], latencies: new Map() };
      fresh.set(id, one);
    }
    return one;
  };
  // Whole blocks, since digests are of whole blocks.
  const low = Math.floor(from / BLOCK) * BLOCK;
  const high = Math.ceil(to / BLOCK) * BLOCK;
  const minutes = db.query(
    'select bucket, "user", template, app, mask from usage_minutes where bucket >= ? and bucket < ?',
  );
  for (const row of minutes.values(low, high) as number[][]) {
    const [bucket = 0, user = 0, template = 0, app = 0, mask = 0] = row;
    of(bucket, user, template).minutes.push({ at: bucket % BLOCK, app, mask });
  }
  const latencies = db.query(
    'select bucket, "user", template, ms, "count" from usage_latencies where bucket >= ? and bucket < ?',
  );
  for (const row of latencies.values(low, high) as number[][]) {
    const [bucket = 0, user = 0, template = 0, ms = 0, count = 0] = row;
    const known = of(bucket, user, template).latencies;
    const at = bucket % BLOCK;
    known.set(at, [...(known.get(at) ?? []), { ms, count }]);
  }
  return fresh;
};

const addAll = (block: Block, { minutes, latencies }: Fresh): void => {
  minutesOf(block, ANY);
  for (const { at, app, mask } of minutes) {
    const counted = minutesOf(block, app);
    counted[at] = Math.min(MOST, (counted[at] as number) + onesIn(mask));
  }
  for (const [at, samples] of latencies) block.latency[at] ||= medianOf(samples);
};
