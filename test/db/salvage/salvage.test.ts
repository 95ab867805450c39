// Salvages damaged databases: with overwritten pages, truncated files, or zeroed headers.
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { closeSync, cpSync, ftruncateSync, openSync, readFileSync, statSync, writeSync } from "node:fs";
import { join } from "node:path";
import { openEncryption } from "#base/encryption.ts";
import { BackupError } from "#db/backup/manifest.ts";
import { insertInto } from "#db/engine/sql.ts";
import { type SalvageResult, salvage } from "#db/salvage/salvage.ts";
import { settings } from "#db/schema/core.ts";
import { insertUser } from "#db/users/users.ts";
import { runVerb } from "#test/cli/run-verb.ts";
import { openIn, temporaryDirectory } from "../deployments.ts";

const SEED = Number(Bun.env.SLIPWAY_TEST_SEED ?? Date.now() % 1_000_000);
/** Number of damaged files of each kind; 200 in the long form of this test. */
const FILE_COUNT = Number(Bun.env.SLIPWAY_TEST_DAMAGED_FILES ?? 3);
const PAGE_BYTES = 4096;
const USER_COUNT = 400;
const SETTING_COUNT = 4_000;

const temp = temporaryDirectory();
const intact = join(temp.path, "whole");
let rows: { settings: Map<string, string>; users: Set<string> };
let copyCount = 0;

beforeAll(async () => {
  const store = openIn(intact);
  openEncryption(intact);
  const insertOne = insertInto(settings);
  const account = { status: "active" as const, login_type: "none", roles: [], created_at: 0, updated_at: 0 };
  rows = { settings: new Map(), users: new Set() };
  for (let i = 0; i < USER_COUNT; i++) {
    const id = `user-${i}`;
    rows.users.add(id);
    await store.commit([insertUser({ id, email: `${id}@example.com`, username: id, ...account })]);
  }
  const filler = "a value of some length, so that there are many pages ".repeat(3);
  for (let i = 0; i < SETTING_COUNT; i += 100) {
    const batch = Array.from({ length: 100 }, (_, j) => ({ key: `key-${i + j}`, value: `${i + j} ${filler}` }));
    for (const { key, value } of batch) rows.settings.set(key, value);
    await store.commit(batch.map((row) => insertOne(row)));
  }
  await store.close();
});

afterAll(() => temp[Symbol.dispose]());

/** Copies the intact directory, and damages its database file with this function. */
const makeDamaged = (damage: (fd: number, pages: number) => void): string => {
  const directory = join(temp.path, `damaged-${copyCount++}`);
  cpSync(intact, directory, { recursive: true });
  const file = join(directory, "slipway.db");
  const fd = openSync(file, "r+");
  damage(fd, statSync(file).size / PAGE_BYTES);
  closeSync(fd);
  return directory;
};

const runSalvage = async (from: string): Promise<{ into: string; report: SalvageResult }> => {
  const into = `${from}-new`;
  const signal = new AbortController().signal;
  return { into, report: await salvage({ from, into, now: 1, signal }) };
};

/** Checks that all data of the new database is valid and was in the old one. Returns the numbers of salvaged rows. */
const checkSalvaged = (into: string): { settings: number; users: number } => {
  using db = new Database(join(into, "slipway.db"), { readonly: true });
  expect(db.query("pragma integrity_check").values()).toEqual([["ok"]]);
  expect(db.query("pragma foreign_key_check").values()).toEqual([]);
  const settingRows = db.query("select key, value from settings").values() as [string, string][];
  for (const [key, value] of settingRows)
    if (rows.settings.has(key)) expect(value).toBe(rows.settings.get(key) as string);
  const users = db
    .query("select id from users")
    .values()
    .map(([id]) => String(id));
  expect(users.filter((id) => !rows.users.has(id))).toEqual([]);
  return { settings: settingRows.length, users: users.length };
};

const createRandom = (seed: number): ((below: number) => number) => {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
};

test("[OP-20] an intact database is copied completely, with key and uploads, and unchanged", async () => {
  const from = makeDamaged(() => {});
  const { into, report } = await runSalvage(from);
  expect(checkSalvaged(into)).toEqual({ settings: SETTING_COUNT, users: USER_COUNT });
  expect([report.repaired, report.search]).toEqual(["nothing", "whole"]);
  expect(report.tables.filter(({ unreadable, left_out }) => unreadable !== 0 || left_out > 0)).toEqual([]);
  expect(statSync(join(into, "encryption.key")).size).toBeGreaterThan(0);
  const reopened = await openIn(into);
  await reopened.close();
});

/** Maximum number of rows in a page; the rows of users are the shortest. */
const MAX_LEAF_ROWS = 64;
const LEAF = 0x0d;

/** Returns whether this page of the intact database contains rows, and not the list of tables. */
const isLeafOfRows = (page: number): boolean => {
  const bytes = readFileSync(join(intact, "slipway.db")).subarray(page * PAGE_BYTES, (page + 1) * PAGE_BYTES);
  return bytes[0] === LEAF && !bytes.includes("CREATE ");
};

describe(`overwritten pages (seed ${SEED})`, () => {
  test.each([1, 3, 10, 40])("[OP-20] %i of them lose only their own rows, and no row is invented", async (count) => {
    for (let i = 0; i < FILE_COUNT; i++) {
      const pick = createRandom(SEED + 1000 * count + i);
      const overwritten: number[] = [];
      const from = makeDamaged((fd, pages) => {
        for (let n = 0; n < count; n++) {
          const bytes = Buffer.from(Array.from({ length: PAGE_BYTES }, () => pick(256)));
          const page = 2 + pick(pages - 2);
          overwritten.push(page);
          writeSync(fd, bytes, 0, PAGE_BYTES, page * PAGE_BYTES);
        }
      });
      const { into } = await runSalvage(from);
      const salvaged = checkSalvaged(into);
      // If an inner page or the name of a table is lost, the rows below it are lost too.
      if (overwritten.every(isLeafOfRows)) {
        expect(salvaged.settings + salvaged.users).toBeGreaterThanOrEqual(
          SETTING_COUNT + USER_COUNT - MAX_LEAF_ROWS * count,
        );
      }
    }
  });
});

test("[OP-20] the rows in the remaining part of a truncated file are recovered", async () => {
  const { into } = await runSalvage(
    makeDamaged((fd, pages) => ftruncateSync(fd, Math.floor(0.8 * pages) * PAGE_BYTES)),
  );
  const salvaged = checkSalvaged(into);
  expect(salvaged.settings).toBeGreaterThan(100);
});

test.each([
  [100, "header"],
  [PAGE_BYTES, "header and list of tables"],
] as const)("[OP-20] with %i bytes of zeros at the start, everything is recovered", async (bytes, repaired) => {
  const { into, report } = await runSalvage(makeDamaged((fd) => void writeSync(fd, Buffer.alloc(bytes), 0, bytes, 0)));
  expect(report.repaired).toBe(repaired);
  expect(checkSalvaged(into)).toEqual({ settings: SETTING_COUNT, users: USER_COUNT });
});

test("[OP-20] a lost page of the schema table loses only the tables that it lists, even if other pages list their indexes", async () => {
  const bytes = readFileSync(join(intact, "slipway.db"));
  const lostPage = Math.floor(bytes.indexOf("CREATE TABLE `tasks`") / PAGE_BYTES);
  expect(lostPage).toBeGreaterThan(0);
  const { into, report } = await runSalvage(
    makeDamaged((fd) => void writeSync(fd, Buffer.alloc(PAGE_BYTES, 0xff), 0, PAGE_BYTES, lostPage * PAGE_BYTES)),
  );
  expect(report.repaired).toBe("header and list of tables");
  expect(checkSalvaged(into)).toEqual({ settings: SETTING_COUNT, users: USER_COUNT });
  expect(report.tables.filter(({ unreadable }) => unreadable !== 0).map(({ name }) => name)).toContain("tasks");
});

test("[OP-20] the command names the tables with losses, and refuses a folder that is not empty", async () => {
  const from = makeDamaged((fd, pages) => {
    for (let page = 40; page < pages; page += 7)
      writeSync(fd, Buffer.alloc(PAGE_BYTES, 0xff), 0, PAGE_BYTES, page * PAGE_BYTES);
  });
  const into = `${from}-new`;
  const { code, printed } = await runVerb(["salvage", into, "--data-dir", from]);
  expect(code).toBe(0);
  expect(printed).toMatch(/Copied \d+ rows of \d+ tables into/);
  expect(printed).toMatch(/Tables that lost rows:\n.*UNREADABLE RANGES.*\n(.*\n)*settings /);
  const secondRun = await runVerb(["salvage", into, "--data-dir", from]);
  expect([secondRun.code, secondRun.errors]).toEqual([1, expect.stringContaining("is not empty")]);
  const error = await runSalvage(temp.path).catch((error: unknown) => error);
  expect(error).toBeInstanceOf(BackupError);
});
