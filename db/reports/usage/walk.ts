// Iterates over the packed rows of usage in a range, by block and user, including data that is not aggregated yet. Runs in reader Workers
// for the insights reports (db/reports/usage/reports.ts): must not be called on the main thread.
import type { ReadRows } from "../../engine/rows.ts";
import {
  ANY_APP,
  BLOCK,
  type Block,
  computeMedian,
  countBits,
  createBlock,
  Detail,
  Digest,
  getMinutes,
  hasAdjacentBits,
  MAX_BUCKET_MINUTES,
  packDetail,
  packDigest,
  toBlock,
  toRowId,
  toTemplate,
  toUser,
  unpackDetail,
} from "./block.ts";

/** Buckets [from, to), of all templates or of those with these keys. */
export type Span = { readonly from: number; readonly to: number; readonly templates?: ReadonlySet<number> | undefined };

export type UsageRow = {
  readonly template: number;
  readonly digest: Digest;
  /** Returns every bucket. */
  detail(): Detail;
};

/** One user's usage in one block, by template. */
export class Group {
  readonly user: number;
  /** The first bucket of the block. */
  readonly start: number;
  /** The range's positions in the block: [low, high). */
  readonly low: number;
  readonly high: number;
  readonly rows: readonly UsageRow[];

  constructor(id: number, rows: readonly UsageRow[], { from, to }: Span) {
    this.user = toUser(id);
    this.start = toBlock(id) * BLOCK;
    this.low = Math.max(0, from - this.start);
    this.high = Math.min(BLOCK, to - this.start);
    this.rows = rows;
  }

  /** Whether the range includes the whole block. */
  get coversBlock(): boolean {
    return this.low === 0 && this.high === BLOCK;
  }

  /** Whether no two templates were used in the same or adjacent buckets, so that their figures can be added. */
  get hasSeparateTemplates(): boolean {
    const { rows } = this;
    for (let i = 1; i < rows.length; i++) {
      const { bits } = (rows[i] as UsageRow).digest;
      for (let k = 0; k < i; k++) if (hasAdjacentBits((rows[k] as UsageRow).digest.bits, bits)) return false;
    }
    return true;
  }
}

/** Limits on rows per read, rows processed together, and rows per report. A larger deployment needs narrower queries. */
const PAGE_ROWS = 5_000;
const BATCH_ROWS = 500;
const MAX_ROWS = 2_000_000;

/** A packed row, before it is known whether its detail is needed. */
type PackedRow = { readonly id: number; readonly digest: Uint8Array | undefined; detail: Uint8Array | undefined };

/**
 * Calls `visit` for each user and block, ordered by block. With `details`, rows have their details if needed: when the range covers the
 * block partially, or templates were used at the same time.
 */
export const walkUsage = async (
  read: ReadRows,
  span: Span,
  visit: (group: Group) => void,
  { details = false } = {},
): Promise<void> => {
  const { from, to, templates } = span;
  if (to <= from) return;
  const fresh = await loadUnaggregated(read, span);
  let rows: PackedRow[] = [];
  /** Visits the collected groups, except the last one if more of it may follow. */
  const visitGroups = async (isLast: boolean): Promise<void> => {
    const end = isLast
      ? rows.length
      : rows.findLastIndex(({ id }) => toGroupNumber(id) !== toGroupNumber(rows.at(-1)?.id ?? 0)) + 1;
    const complete = rows.slice(0, end);
    rows = rows.slice(end);
    for (const group of await loadGroups(read, complete, { fresh, span, details })) visit(group);
  };
  const addRow = (row: PackedRow): void => {
    if (templates && !templates.has(toTemplate(row.id))) return;
    if (row.digest || fresh.has(row.id)) rows.push(row);
  };
  const freshIds = [...fresh.keys()].sort((a, b) => a - b);
  let nextFresh = 0;
  /** Adds the rows below `end` of which nothing is aggregated yet. */
  const addFreshRows = (end: number): void => {
    for (; (freshIds[nextFresh] ?? Number.POSITIVE_INFINITY) < end; nextFresh++)
      addRow({ id: freshIds[nextFresh] as number, digest: undefined, detail: undefined });
  };
  let count = 0;
  for (const [low, high, coversBlock] of splitByBlocks(span)) {
    const end = toRowId(high, 0, 0);
    const sql = details && !coversBlock ? SELECT_DETAILS : SELECT_DIGESTS;
    for (let next = toRowId(low, 0, 0); ; ) {
      const found = (await read(sql, [next, end])) as [number, Uint8Array, Uint8Array?][];
      for (const [id, digest, detail] of found) {
        addFreshRows(id);
        if (freshIds[nextFresh] === id) nextFresh++;
        addRow({ id, digest, detail: detail ?? undefined });
        if (rows.length >= BATCH_ROWS) await visitGroups(false);
      }
      count += found.length;
      if (found.length < PAGE_ROWS) break;
      if (count > MAX_ROWS) throw new Error(`more than ${MAX_ROWS} rows of use`);
      next = (found.at(-1)?.[0] ?? end) + 1;
    }
  }
  addFreshRows(Number.POSITIVE_INFINITY);
  await visitGroups(true);
};

const SELECT_DIGESTS = `select id, digest from usage_digests where id >= ? and id < ? order by id limit ${PAGE_ROWS}`;
const SELECT_DETAILS = `
  select g.id, g.digest, d.detail from usage_digests g left join usage_details d on d.id = g.id
  where g.id >= ? and g.id < ? order by g.id limit ${PAGE_ROWS}`;

/** Returns a number for a user in a block. */
const toGroupNumber = (id: number): number => Math.floor(id / 2 ** 18);

type LoadOptions = { readonly fresh: ReadonlyMap<number, FreshUsage>; readonly span: Span; readonly details: boolean };

const loadGroups = async (
  read: ReadRows,
  rows: readonly PackedRow[],
  { fresh, span, details }: LoadOptions,
): Promise<Group[]> => {
  // Data that is not aggregated yet is added to the detail, from which the digest is derived.
  await readDetails(
    read,
    rows.filter(({ id }) => fresh.has(id)),
  );
  const groups: Group[] = [];
  const rowsByGroup: PackedRow[][] = [];
  for (let at = 0; at < rows.length; ) {
    const first = rows[at] as PackedRow;
    let end = at + 1;
    while (end < rows.length && toGroupNumber((rows[end] as PackedRow).id) === toGroupNumber(first.id)) end++;
    const groupRows = rows.slice(at, end);
    groups.push(
      new Group(
        first.id,
        groupRows.map((row) => toRow(row, fresh.get(row.id))),
        span,
      ),
    );
    rowsByGroup.push(groupRows);
    at = end;
  }
  if (details) {
    const needingDetails = rowsByGroup.filter((_, i) => !(groups[i]?.coversBlock && groups[i]?.hasSeparateTemplates));
    await readDetails(
      read,
      needingDetails.flat().filter(({ id }) => !fresh.has(id)),
    );
  }
  return groups;
};

const toRow = (row: PackedRow, fresh: FreshUsage | undefined): UsageRow => {
  const template = toTemplate(row.id);
  const getDetail = (): Uint8Array => row.detail ?? packDetail(createBlock());
  if (!fresh) return { template, digest: new Digest(row.digest as Uint8Array), detail: () => new Detail(getDetail()) };
  const block = unpackDetail(getDetail());
  addAll(block, fresh);
  return { template, digest: new Digest(packDigest(block)), detail: () => new Detail(packDetail(block)) };
};

const readDetails = async (read: ReadRows, rows: readonly PackedRow[]): Promise<void> => {
  const missing = new Map(rows.filter(({ detail }) => !detail).map((row) => [row.id, row]));
  if (missing.size === 0) return;
  const sql = "select id, detail from usage_details where id in (select value from json_each(?))";
  for (const [id, detail] of await read(sql, [JSON.stringify([...missing.keys()])])) {
    const row = missing.get(id as number);
    if (row) row.detail = detail as Uint8Array;
  }
};

/** Splits a span into ranges of blocks [low, high): partially covered ones, and fully covered ones in between. */
const splitByBlocks = ({ from, to }: Span): [low: number, high: number, coversBlock: boolean][] => {
  const [first, last] = [Math.floor(from / BLOCK), Math.floor((to - 1) / BLOCK)];
  const [started, ended] = [from % BLOCK !== 0, to % BLOCK !== 0];
  if (first === last) return [[first, last + 1, !started && !ended]];
  const [low, high] = [started ? first + 1 : first, ended ? last : last + 1];
  return [
    ...(started ? [[first, low, false] as [number, number, boolean]] : []),
    [low, high, true],
    ...(ended ? [[high, last + 1, false] as [number, number, boolean]] : []),
  ];
};

type FreshUsage = {
  minutes: { at: number; app: number; mask: number }[];
  latencies: Map<number, { ms: number; count: number }[]>;
};

/** Returns the data that is not aggregated yet, by the ID of the row it will be aggregated into. */
const loadUnaggregated = async (read: ReadRows, { from, to }: Span): Promise<Map<number, FreshUsage>> => {
  const fresh = new Map<number, FreshUsage>();
  const getFresh = (bucket: number, user: number, template: number): FreshUsage => {
    const id = toRowId(Math.floor(bucket / BLOCK), user, template);
    let usage = fresh.get(id);
    if (!usage) {
      usage = { minutes: [], latencies: new Map() };
      fresh.set(id, usage);
    }
    return usage;
  };
  // Whole blocks, because digests cover whole blocks.
  const low = Math.floor(from / BLOCK) * BLOCK;
  const high = Math.ceil(to / BLOCK) * BLOCK;
  const minutes = await read(
    'select bucket, "user", template, app, mask from usage_minutes where bucket >= ? and bucket < ?',
    [low, high],
  );
  for (const row of minutes as number[][]) {
    const [bucket = 0, user = 0, template = 0, app = 0, mask = 0] = row;
    getFresh(bucket, user, template).minutes.push({ at: bucket % BLOCK, app, mask });
  }
  const latencies = await read(
    'select bucket, "user", template, ms, "count" from usage_latencies where bucket >= ? and bucket < ?',
    [low, high],
  );
  for (const row of latencies as number[][]) {
    const [bucket = 0, user = 0, template = 0, ms = 0, count = 0] = row;
    const bucketLatencies = getFresh(bucket, user, template).latencies;
    const at = bucket % BLOCK;
    bucketLatencies.set(at, [...(bucketLatencies.get(at) ?? []), { ms, count }]);
  }
  return fresh;
};

const addAll = (block: Block, { minutes, latencies }: FreshUsage): void => {
  getMinutes(block, ANY_APP);
  for (const { at, app, mask } of minutes) {
    const counted = getMinutes(block, app);
    counted[at] = Math.min(MAX_BUCKET_MINUTES, (counted[at] as number) + countBits(mask));
  }
  for (const [at, samples] of latencies) block.latency[at] ||= computeMedian(samples);
};
