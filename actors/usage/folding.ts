// Aggregates finished buckets from single rows into the packed rows of their user and template. Works in small slices, each in one commit
// that also deletes the single rows, so that everything counts exactly once (rule IN-5).
import type { Store } from "#db/engine/store.ts";
import {
  BLOCK,
  type Block,
  computeMedian,
  countBits,
  createBlock,
  getMinutes,
  MAX_BUCKET_MINUTES,
  packDetail,
  packDigest,
  toRowId,
  unpackDetail,
} from "#db/reports/usage/block.ts";
import {
  type LatencyRow,
  listDetails,
  listLatencies,
  listMinutes,
  type MinutesRow,
  removeLatencies,
  removeMinutes,
  savePacked,
} from "#db/reports/usage/usage.ts";

/** Maximum packed rows per commit, because each has several kilobytes. */
const MAX_ROWS_PER_COMMIT = 25;

type Waiting = { minutes: MinutesRow[]; latencies: LatencyRow[] };

/** Aggregates every bucket up to this one. Resolves when all of them are aggregated. */
export const foldUsage = async (store: Store, bucket: number): Promise<void> => {
  for (;;) {
    const minutes = await store.scan(listMinutes({ bucket }));
    const latencies = dropPartialBucket(await store.scan(listLatencies({ bucket })));
    if (minutes.length === 0 && latencies.length === 0) return;
    const waiting = new Map<number, Waiting>();
    for (const row of minutes) getWaiting(waiting, row).minutes.push(row);
    for (const row of latencies) getWaiting(waiting, row).latencies.push(row);
    const ids = [...waiting.keys()].sort((a, b) => a - b);
    for (let start = 0; start < ids.length; start += MAX_ROWS_PER_COMMIT) {
      await foldRows(store, ids.slice(start, start + MAX_ROWS_PER_COMMIT), waiting);
    }
  }
};

const getWaiting = (all: Map<number, Waiting>, row: { bucket: number; user: number; template: number }): Waiting => {
  const id = toRowId(Math.floor(row.bucket / BLOCK), row.user, row.template);
  let entry = all.get(id);
  if (!entry) {
    entry = { minutes: [], latencies: [] };
    all.set(id, entry);
  }
  return entry;
};

/** A median needs all samples of its bucket. The last bucket of a full page may be incomplete, so it waits unless it is the only one. */
const dropPartialBucket = (rows: LatencyRow[]): LatencyRow[] => {
  const last = rows.at(-1);
  if (!last || rows.length < PAGE_ROWS) return rows;
  const complete = rows.filter((row) => !isSame(row, last));
  return complete.length > 0 ? complete : rows;
};
const PAGE_ROWS = 4_000;

const isSame = (a: LatencyRow, b: LatencyRow): boolean =>
  a.bucket === b.bucket && a.user === b.user && a.template === b.template;

const foldRows = async (store: Store, ids: readonly number[], waiting: Map<number, Waiting>): Promise<void> => {
  const stored = await store.scan(listDetails({ ids: JSON.stringify(ids) }));
  const details = new Map(stored.map(({ id, detail }) => [id, unpackDetail(detail)]));
  const rows = ids.map((id) => {
    const block = details.get(id) ?? createBlock();
    addTo(block, waiting.get(id) as Waiting);
    return { id, digest: packDigest(block), detail: packDetail(block) };
  });
  const folded = ids.map((id) => waiting.get(id) as Waiting);
  const minutes = folded.flatMap((one) => one.minutes);
  const latencies = folded.flatMap((one) => one.latencies);
  const writes = [
    ...(minutes.length > 0 ? [removeMinutes(minutes)] : []),
    ...(latencies.length > 0 ? [removeLatencies(latencies)] : []),
    ...savePacked(rows),
  ];
  await store.commit(writes, { of: "deployment" });
};

/** Adds rows of one user and template to their packed row. */
export const addTo = (block: Block, { minutes, latencies }: Waiting): void => {
  for (const { bucket, app, mask } of minutes) {
    const counted = getMinutes(block, app);
    const index = bucket % BLOCK;
    counted[index] = Math.min(MAX_BUCKET_MINUTES, (counted[index] as number) + countBits(mask));
  }
  for (const [at, samples] of Map.groupBy(latencies, ({ bucket }) => bucket % BLOCK)) {
    block.latency[at] ||= computeMedian(samples);
  }
};
