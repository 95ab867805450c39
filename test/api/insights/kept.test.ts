// Compares reports that use the cache of past blocks with reports that read everything again.
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { join } from "node:path";
import { foldUsage } from "#actors/usage/folding.ts";
import { openLocalStore } from "#db/engine/local.ts";
import { makeRowReader } from "#db/engine/rows.ts";
import type { ReportName } from "#db/engine/sql.ts";
import { BUCKET_MS } from "#db/reports/usage/block.ts";
import { PartCache } from "#db/reports/usage/parts.ts";
import { REPORTS, type ReportArgs } from "#db/reports/usage/reports.ts";
import { addLatencies, addMinutes, usageReport } from "#db/reports/usage/usage.ts";
import { randomFrom } from "#test/support/random.ts";
import { tempDirectory } from "#test/support/server.ts";
import { DAY, makeMonth, NOW } from "./month.ts";

const NAMES = Object.keys(REPORTS) as ReportName[];
const ROUNDS = 12;

/** Returns the arguments of a report by day, from `first` to `last` days ago. */
const daysAgo = (first: number, last: number): ReportArgs => {
  const today = Math.floor(NOW / DAY) * DAY;
  const edges = Array.from({ length: first - last + 1 }, (_, i) => today - (first - i) * DAY);
  const dates = edges.slice(0, -1).map((edge) => new Date(edge).toISOString().slice(0, 10));
  return { from: today - first * DAY, to: today - last * DAY, interval: "day", edges, dates, tz_hour_offset: 0 };
};

const seed = Math.floor(Math.random() * 2 ** 31);
test(`[IN-13] the next report contains usage written later in any block (seed ${seed})`, async () => {
  using directory = tempDirectory();
  const fatal = (error: Error): void => {
    throw error;
  };
  const store = openLocalStore({ directory: directory.path, cacheMb: 16, now: NOW, fatal });
  try {
    const { templates } = await makeMonth(store, seed, 9);
    const random = randomFrom(seed);
    const drawBelow = (n: number): number => Math.floor(random() * n);
    const rows = await store.scan({
      sql: "select key, kind from usage_keys",
      params: [],
      map: (row) => row.map(Number),
    });
    const pickKey = (kind: number): number => {
      const keys = rows.filter(([, keyKind]) => keyKind === kind);
      return keys[drawBelow(keys.length)]?.[0] as number;
    };
    using db = new Database(join(directory.path, "slipway.db"), { readonly: true });
    for (let round = 0; round < ROUNDS; round++) {
      for (const args of [daysAgo(200, 0), daysAgo(70, 1), { ...daysAgo(200, 0), templates: templates.slice(1) }]) {
        for (const name of NAMES) {
          const [text] = await store.scan(usageReport(name, args));
          expect(JSON.parse(text as string)).toEqual(
            JSON.parse(await REPORTS[name as keyof typeof REPORTS](makeRowReader(db), args, new PartCache(0))),
          );
        }
      }
      const bucket = Math.floor((NOW - drawBelow(200 * DAY)) / BUCKET_MS);
      const row = { bucket, user: pickKey(0), template: pickKey(1) };
      await store.commit(addMinutes([0, pickKey(2)].map((app) => ({ ...row, app, mask: 1 + drawBelow(2 ** 30 - 1) }))));
      if (round % 3 === 0) await store.commit(addLatencies([{ ...row, ms: 1 + drawBelow(700), count: 1 }]));
      if (round % 4 === 3) await foldUsage(store, Math.floor(NOW / BUCKET_MS));
    }
  } finally {
    await store.close();
  }
});
