// Repairs the copy of a file that has changed since it was copied: after the repair, the copy equals the file.
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { readFileSync, truncateSync, writeFileSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import { systemClock } from "#base/clock.ts";
import { Draft } from "#db/backup/draft.ts";
import { Flow, PIECE_BYTES } from "#db/backup/flow.ts";
import { DatabaseCopy, finishCopy } from "#db/backup/snapshot.ts";
import { temporaryDirectory } from "../deployments.ts";

const flow = () => new Flow(systemClock, 0, new AbortController().signal);
const FILE_BYTES = 3 * PIECE_BYTES + 4096;

const CHANGES: [string, (file: string) => void][] = [
  ["is the same", () => {}],
  ["has changed in the middle", (file) => writeAt(file, PIECE_BYTES + 17)],
  ["has changed in its last, shorter piece", (file) => writeAt(file, FILE_BYTES - 1)],
  ["has grown", (file) => writeFileSync(file, new Uint8Array(2 * PIECE_BYTES).fill(5), { flag: "a" })],
  ["has shrunk", (file) => truncateSync(file, PIECE_BYTES + 4096)],
  ["is empty", (file) => truncateSync(file, 0)],
];
const writeAt = (file: string, offset: number): void => {
  const bytes = readFileSync(file);
  bytes[offset] = 9;
  writeFileSync(file, bytes);
};

test.each(CHANGES)(
  "[OP-2] a repair makes the copy equal to a file that %s since it was copied",
  async (_what, change) => {
    using temp = temporaryDirectory();
    const [file, copy] = [join(temp.path, "file"), join(temp.path, "copy")];
    writeFileSync(file, new Uint8Array(FILE_BYTES).fill(1));
    await using handle = await open(file, "r");
    const draft = await Draft.make(handle, copy, flow());
    change(file);
    await draft.repair(handle, flow());
    expect(readFileSync(copy).equals(readFileSync(file))).toBe(true);
    // Repairs again, as after a file of the snapshot was deleted.
    change(file);
    await draft.repair(handle, flow());
    await draft.close();
    expect(readFileSync(copy).equals(readFileSync(file))).toBe(true);
  },
);

test("[OP-5] a repair writes only what has changed, and may read eight times as fast as it may write", async () => {
  using temp = temporaryDirectory();
  const [file, copy] = [join(temp.path, "file"), join(temp.path, "copy")];
  writeFileSync(file, new Uint8Array(FILE_BYTES).fill(1));
  await using handle = await open(file, "r");
  const draft = await Draft.make(handle, copy, flow());
  writeAt(file, PIECE_BYTES);
  const counting = new CountingFlow(systemClock, 0, new AbortController().signal);
  await draft.repair(handle, counting);
  await draft.close();
  expect(counting.written).toEqual([PIECE_BYTES]);
  expect(counting.passed).toBe(FILE_BYTES / 8 + PIECE_BYTES);
});

test("[OP-5] a copy keeps the write-ahead log from being truncated only in its last pass, and has everything committed before that", async () => {
  using temp = temporaryDirectory();
  const [file, copyPath] = [join(temp.path, "some.db"), join(temp.path, "copy.db")];
  using db = new Database(file, { create: true });
  for (const sql of ["pragma journal_mode=wal", "pragma wal_autocheckpoint=0", TABLES]) db.run(sql);
  const canTruncate = () => (db.query("pragma wal_checkpoint(truncate)").get() as { busy: number }).busy === 0;
  const insertRow = () => db.run("insert into files values (hex(randomblob(100000)))");
  insertRow();
  const copy = await DatabaseCopy.begin(file, copyPath, flow());
  insertRow();
  expect(canTruncate()).toBe(true);
  insertRow();
  const { hashes } = await copy.copyCommitted(flow(), async () => {
    insertRow();
    expect(canTruncate()).toBe(false);
  });
  await copy[Symbol.asyncDispose]();
  expect(hashes).toHaveLength(3);
  expect(canTruncate()).toBe(true);
  finishCopy(copyPath);
  using copied = new Database(copyPath, { readonly: true });
  expect(copied.query("select count(*) from files").values()[0]?.[0]).toBeGreaterThanOrEqual(3);
});

const TABLES = `
  create table migrations (version integer, name text);
  insert into migrations values (1, 'one');
  create table files (hash text);
  create table chat_files (hash text);
`;

class CountingFlow extends Flow {
  readonly written: number[] = [];
  passed = 0;

  override throttle(bytes: number): Promise<void> {
    this.passed += bytes;
    return super.throttle(bytes);
  }

  override flushing(target: FileHandle) {
    const write = super.flushing(target);
    return (piece: Uint8Array, offset?: number): Promise<void> => {
      this.written.push(offset ?? -1);
      return write(piece, offset);
    };
  }
}
