// Goes through the packed rows of use in a range, by block and user, together with what is not folded yet. Runs in reader Workers for
// the reports of insights (db/usage-reports.ts): nothing here may be called on the main thread.
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
} from "./usage-block.ts";

/** Buckets [from, to); of all templates, or of those with these keys. */
export type Span = { readonly from: number; readonly to: number; readonly templates?: ReadonlySet<number> | undefined };

export type UsageRow = {
  readonly template: number;
  readonly digest: Digest;
  /** Every bucket; read on demand. */
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

  /** No two templates were used in the same bucket or one after the other, so that their digests can be added up. */
  get apart(): boolean {
    if (this.rows.length < 2) return true;
    const all = this.rows.map(({ digest }) => digest.bits);
    return all.every((bits, i) => all.slice(0, i).every((before) => !touches(before, bits)));
  }
}

/** Rows read at once, and of one report: a deployment with more needs narrower questions. */
const PAGE = 20_000;
const MOST_ROWS = 2_000_000;

/** Calls `see` for each user and block, by block. */
export const walk = (db: Database, span: Span, see: (group: Group) => void): void => {
  const { from, to, templates } = span;
  if (to <= from) return;
  const end = idOf(Math.floor((to - 1) / BLOCK) + 1, 0, 0);
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
  const take = (id: number, digest: Uint8Array | undefined): void => {
    const template = templateIn(id);
    if (templates && !templates.has(template)) return;
    if (last < 0 || Math.floor(id / 2 ** 18) !== Math.floor(last / 2 ** 18)) close();
    last = id;
    const more = fresh.get(id);
    if (more) {
      const block = unpackDetail(detailOf(id));
      addAll(block, more);
      rows.push({ template, digest: new Digest(packDigest(block)), detail: () => new Detail(packDetail(block)) });
    } else if (digest) {
      rows.push({ template, digest: new Digest(digest), detail: () => new Detail(detailOf(id)) });
    }
  };
  const page = db.query(`select id, digest from usage_digests where id >= ? and id < ? order by id limit ${PAGE}`);
  let next = idOf(Math.floor(from / BLOCK), 0, 0);
  let read = 0;
  let w = 0;
  for (;;) {
    const found = page.values(next, end) as [number, Uint8Array][];
    for (const [id, digest] of found) {
      while (w < waiting.length && (waiting[w] as number) < id) take(waiting[w++] as number, undefined);
      if (waiting[w] === id) w++;
      take(id, digest);
    }
    read += found.length;
    if (found.length < PAGE) break;
    if (read > MOST_ROWS) throw new Error(`more than ${MOST_ROWS} rows of use`);
    next = (found.at(-1)?.[0] ?? end) + 1;
  }
  while (w < waiting.length) take(waiting[w++] as number, undefined);
  close();
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
