// The image, an empty database that the build creates: it equals the result of the migrations, and replaces only an empty file.
import type { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { copyFileSync, existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { makeImage } from "#db/engine/image.ts";
import { openDatabase } from "#db/engine/open.ts";
import { temporaryDirectory } from "./deployments.ts";

const NOW = 1_700_000_000_000;
const image = makeImage();

/** Opens the directory's database, and returns the result of `read` on it. */
const withOpened = <T>(directory: string, options: { image?: Uint8Array }, read: (db: Database) => T): T => {
  const { db, unlock } = openDatabase(directory, { cacheMb: 8, now: NOW, ...options });
  try {
    return read(db);
  } finally {
    db.close();
    unlock();
  }
};

/** Returns the contents of a database: its schema, all rows, and the file's pragmas. */
const readContents = (db: Database): unknown => {
  const schema = db.query("select type, name, tbl_name, sql from sqlite_schema order by type, name").all();
  const tables = db.query("select name from sqlite_schema where type = 'table' order by name").values().flat();
  const settings = ["application_id", "user_version", "page_size", "encoding", "auto_vacuum", "journal_mode"];
  return {
    schema,
    rows: Object.fromEntries(tables.map((name) => [name, db.query(`select * from "${name}"`).values()])),
    settings: settings.map((name) => db.query(`pragma ${name}`).values()[0]?.[0]),
    integrity: db.query("pragma integrity_check").values(),
  };
};

test("[ST-28] a database from the image equals one from all migrations, whose time is that of the first start", () => {
  using created = temporaryDirectory();
  using stepped = temporaryDirectory();
  const fromImage = withOpened(created.path, { image }, readContents);
  expect(fromImage).toEqual(withOpened(stepped.path, {}, readContents));
  expect(withOpened(created.path, {}, (db) => db.query("select distinct applied_at from migrations").values())).toEqual(
    [[NOW]],
  );
  expect(statSync(join(created.path, "slipway.db")).mode & 0o777).toBe(0o600);
  expect(existsSync(join(created.path, "slipway.db.part"))).toBe(false);
});

test("[ST-28] the image does not replace a database that has data or whose log still exists", () => {
  using temp = temporaryDirectory();
  const insert = "insert into settings values ('kept', 'yes')";
  const readKept = (db: Database): unknown => db.query("select value from settings where key = 'kept'").values();
  withOpened(temp.path, { image }, (db) => db.run(insert));
  expect(withOpened(temp.path, { image }, readKept)).toEqual([["yes"]]);

  // The files after a kill before the first checkpoint: nearly all data is in the log.
  using killed = temporaryDirectory();
  using fresh = temporaryDirectory();
  withOpened(fresh.path, {}, (db) => {
    db.run("insert into settings values ('kept', 'in the log')");
    copyFileSync(join(fresh.path, "slipway.db-wal"), join(killed.path, "slipway.db-wal"));
    copyFileSync(join(fresh.path, "slipway.db"), join(killed.path, "slipway.db"));
  });
  expect(withOpened(killed.path, { image }, readKept)).toEqual([["in the log"]]);
});

test("[ST-28] after a kill before the image is renamed, the directory has no database, and the next start creates it", async () => {
  using temp = temporaryDirectory();
  const program = `
    const { armFailpoint } = await import("#base/failpoint.ts");
    const { makeImage } = await import("#db/engine/image.ts");
    const { openDatabase } = await import("#db/engine/open.ts");
    const image = makeImage();
    armFailpoint("in_migration");
    openDatabase(process.argv.at(-1), { cacheMb: 8, now: 0, image });
  `;
  const directory = join(temp.path, "data");
  const child = Bun.spawn([process.execPath, "-e", program, directory], {
    cwd: join(import.meta.dir, "../.."),
    stdout: "ignore",
    stderr: "inherit",
  });
  await child.exited;
  expect(child.signalCode).toBe("SIGKILL");
  expect(statSync(join(directory, "slipway.db")).size).toBe(0);
  expect(existsSync(join(directory, "slipway.db.part"))).toBe(true);
  expect(withOpened(directory, { image }, readContents)).toMatchObject({ integrity: [["ok"]] });
  expect(existsSync(join(directory, "slipway.db.part"))).toBe(false);
});
