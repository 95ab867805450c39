// Twelve months of use by many people, written directly to a store in packed form, for the insights row. Half of the people use a second
// template; one in ten uses both at the same time.
import { uuid } from "#base/ids.ts";
import type { Statement } from "#db/engine/sql.ts";
import type { Store } from "#db/engine/store.ts";
import {
  ANY_APP,
  BLOCK,
  type Block,
  BUCKET_MS,
  createBlock,
  getMinutes,
  packDetail,
  packDigest,
  toRowId,
} from "#db/reports/usage/block.ts";
import { formatAppName, KEY_KINDS } from "#db/reports/usage/keys.ts";
import { insertUsageKeys, listUsageKeys, savePacked } from "#db/reports/usage/usage.ts";
import { insertUser } from "#db/users/users.ts";
import { BUILTIN_APPS } from "#schema/workspaces/usage-app.ts";

const DAY_BUCKETS = 48;
const MONTHS_MS = 366 * 86_400_000;
/** Number of different blocks, which people share. */
const BLOCK_KINDS = 120;
const ROWS_PER_COMMIT = 60;

/** Fills the store of a server that has these templates. Returns the number of packed rows. */
export const seedUsage = async (
  store: Store,
  now: number,
  options: { people: number; templates: readonly string[] },
): Promise<number> => {
  const { people: count, templates } = options;
  const timestamps = { created_at: now - MONTHS_MS, updated_at: now - MONTHS_MS };
  const people = Array.from({ length: count }, uuid);
  for (let start = 0; start < count; start += 200) {
    await store.commit(
      people.slice(start, start + 200).map((id, i): Statement => {
        const username = `worker-${start + i}`;
        const email = `${username}@example.com`;
        return insertUser({ id, username, email, status: "active", login_type: "none", ...timestamps });
      }),
    );
  }
  const loadKeys = async (kind: 0 | 1 | 2, names: readonly string[]): Promise<number[]> => {
    for (let start = 0; start < names.length; start += 200) {
      await store.commit([insertUsageKeys(names.slice(start, start + 200).map((name) => ({ kind, name })))]);
    }
    const rows = await store.scan(listUsageKeys({ kind, names: JSON.stringify(names) }));
    const keys = new Map(rows.map(({ key, name }) => [name, key]));
    return names.map((name) => keys.get(name) as number);
  };
  const userKeys = await loadKeys(KEY_KINDS.user, people);
  const templateKeys = await loadKeys(KEY_KINDS.template, templates);
  const appKeys = await loadKeys(
    KEY_KINDS.app,
    BUILTIN_APPS.map((app) => formatAppName({ ...app, type: "builtin" })),
  );
  const packed = Array.from({ length: BLOCK_KINDS }, (_, i) => {
    const block = makeBlock(i, appKeys);
    return { digest: packDigest(block), detail: packDetail(block) };
  });
  const [first, last] = [Math.floor((now - MONTHS_MS) / BUCKET_MS / BLOCK), Math.floor(now / BUCKET_MS / BLOCK) - 1];
  let rows: { id: number; digest: Uint8Array; detail: Uint8Array }[] = [];
  let rowCount = 0;
  for (let block = first; block <= last; block++) {
    for (const [i, user] of userKeys.entries()) {
      for (let templateNumber = 0; templateNumber < (i % 2 === 0 ? 2 : 1); templateNumber++) {
        const template = templateKeys[(i + templateNumber) % templateKeys.length] as number;
        // Blocks of odd kinds are on other days than blocks of even kinds.
        const kind = ((i * 7 + block) * 2 + (i % 20 === 0 ? 0 : templateNumber)) % BLOCK_KINDS;
        rows.push({ id: toRowId(block, user, template), ...(packed[kind] as (typeof packed)[number]) });
        rowCount += 1;
      }
      if (rows.length >= ROWS_PER_COMMIT) await store.commit(savePacked(rows.splice(0)));
    }
    if (rows.length > 0) await store.commit(savePacked(rows));
    rows = [];
  }
  return rowCount;
};

/** Creates a block with eight hours on two days of three, with two apps. */
const makeBlock = (kind: number, apps: readonly number[]): Block => {
  const block = createBlock();
  for (let day = 0; day < BLOCK / DAY_BUCKETS; day++) {
    if ((day + kind) % 3 === 0 || (kind % 2 === 1 && day % 4 !== 0)) continue;
    const firstBucket = day * DAY_BUCKETS + (kind % 2 === 0 ? 14 : 36) + ((kind + day) % 5);
    for (let i = firstBucket; i < Math.min(firstBucket + (kind % 2 === 0 ? 17 : 6), (day + 1) * DAY_BUCKETS); i++) {
      const minutes = 5 + ((i * 7 + kind) % 26);
      getMinutes(block, ANY_APP)[i] = minutes;
      getMinutes(block, apps[kind % 2] as number)[i] = minutes;
      if (i % 3 === 0) getMinutes(block, apps[2] as number)[i] = 5;
      block.latency[i] = 20 + ((i * 13 + kind * 5) % 120);
    }
  }
  return block;
};
