// Workers in addition to the writer: the checkpoint Worker, which keeps the log short, and the readers of `scan`.
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readlinkSync, statSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "#base/clock.ts";
import { NIL_UUID } from "#base/ids.ts";
import { withOrigin } from "#base/origin.ts";
import { Checkpointer } from "#db/engine/checkpoint.ts";
import { Readers } from "#db/engine/readers.ts";
import type { Query, Value } from "#db/engine/sql.ts";
import { until } from "#test/support/until.ts";
import { temporaryDirectory } from "./deployments.ts";

const toRowsQuery = (sql: string): Query<Value[]> => ({ sql, params: [], map: (row) => row });

/** Returns the number of this process's file descriptors for files below `folder`; none if unknown. */
const countOpenFiles = (folder: string): number =>
  !existsSync("/proc/self/fd")
    ? 0
    : readdirSync("/proc/self/fd").filter((descriptor) => {
        try {
          return readlinkSync(`/proc/self/fd/${descriptor}`).startsWith(folder);
        } catch {
          return false;
        }
      }).length;

const getMessage = (error: Error): string => error.message;

describe("background work", () => {
  let temp: ReturnType<typeof temporaryDirectory>;
  let file: string;
  let db: Database;
  beforeEach(() => {
    temp = temporaryDirectory();
    file = join(temp.path, "some.db");
    db = new Database(file, { create: true });
    for (const pragma of ["journal_mode=wal", "synchronous=full", "wal_autocheckpoint=0", "busy_timeout=5000"]) {
      db.run(`pragma ${pragma}`);
    }
    db.run("create table lines (id integer primary key, text text)");
  });
  afterEach(() => {
    db.close();
    temp[Symbol.dispose]();
  });
  const write = (count: number) =>
    db.transaction(() => {
      for (let i = 0; i < count; i++) db.run("insert into lines (text) values (?)", ["x".repeat(1_000)]);
    })();
  const readLogBytes = () => statSync(`${file}-wal`).size;
  /** Reports commits until the condition is met. The runner's timeout limits the wait. */
  const commitUntil = (checkpointer: Checkpointer, isDone: () => boolean) =>
    until(() => {
      if (!isDone()) checkpointer.onCommit();
      return isDone();
    });
  const recordFatal = (): { errors: Error[]; fatal(error: Error): void } => {
    const errors: Error[] = [];
    return { errors, fatal: (error) => errors.push(error) };
  };

  test("[ST-17] a Worker moves the log into the database, so that the log is overwritten from its start", async () => {
    const { fatal, errors } = recordFatal();
    const checkpointer = new Checkpointer(db, { file, workerFrom: 1, fatal });
    const isCheckpointed = (): boolean => {
      const [, log, moved] = db.query("pragma wal_checkpoint(noop)").values()[0] as number[];
      return log === moved;
    };
    // A short log is not checkpointed, because each restart of the log costs the writer a flush.
    write(200);
    const startedAt = systemClock.monotonic();
    await commitUntil(checkpointer, () => systemClock.monotonic() > startedAt + 100);
    expect(isCheckpointed()).toBe(false);
    write(4_000);
    await commitUntil(checkpointer, isCheckpointed);
    const before = readLogBytes();
    write(100);
    expect(readLogBytes()).toBe(before);
    expect(statSync(file).size).toBeGreaterThan(4_000_000);
    await checkpointer.close();
    expect(errors).toEqual([]);
  });

  test("[ST-17] a log above its limit is truncated by the writer", async () => {
    const { fatal } = recordFatal();
    const checkpointer = new Checkpointer(db, { file, limitBytes: 100_000, workerFrom: 1, fatal });
    write(500);
    expect(readLogBytes()).toBeGreaterThan(500_000);
    await commitUntil(checkpointer, () => readLogBytes() === 0);
    await checkpointer.close();
  });

  test("[ST-17] truncation does not wait for an active reader, and the next commit retries", async () => {
    const { fatal } = recordFatal();
    const checkpointer = new Checkpointer(db, { file, limitBytes: 100_000, workerFrom: 1, fatal });
    const reader = new Database(file, { readonly: true });
    reader.run("begin");
    reader.query("select count(*) from lines").all();
    write(5_000);
    const runs: string[] = [];
    const run = db.run.bind(db);
    db.run = (sql: string) => {
      const startedAt = performance.now();
      const result = run(sql);
      if (sql.includes("truncate")) runs.push(performance.now() - startedAt < 2_500 ? "immediate" : "waited");
      return result;
    };
    await commitUntil(checkpointer, () => runs.length > 0);
    expect(runs[0]).toBe("immediate");
    expect(readLogBytes()).toBeGreaterThan(0);
    reader.run("rollback");
    reader.close();
    await commitUntil(checkpointer, () => readLogBytes() === 0);
    expect(db.query("pragma busy_timeout").values()).toEqual([[5000]]);
    await checkpointer.close();
  });

  test("[ST-17] when the Worker fails, the process is asked to shut down, and closing does not hang", async () => {
    const failure = Promise.withResolvers<Error>();
    const checkpointer = new Checkpointer(db, {
      file: join(temp.path, "no", "such.db"),
      workerFrom: 1,
      fatal: failure.resolve,
    });
    checkpointer.onCommit();
    expect((await failure.promise).message).toContain("the checkpoint worker has died");
    await checkpointer.close();
  });

  test("[ST-18] the query itself limits the rows of a scan", async () => {
    write(50);
    const readers = new Readers(file, { workers: 1, rows: 50 });
    expect((await readers.scan(toRowsQuery("select id from lines order by id desc"))).flat().slice(0, 2)).toEqual([
      50, 49,
    ]);
    write(1);
    expect(await readers.scan(toRowsQuery("select id from lines")).catch(getMessage)).toBe("reader: more than 50 rows");
    // Without a limit in the query, its 51 to the sixth rows would fill the memory.
    const hugeQuery = "select a.id from lines a, lines b, lines c, lines d, lines e, lines f";
    expect(await readers.scan(toRowsQuery(hugeQuery)).catch(getMessage)).toBe("reader: more than 50 rows");
    await readers.scan(toRowsQuery("select 1"));
    await readers.close();
  });

  test("[ST-18] a scan cannot write, and a failing query returns its own error", async () => {
    const readers = new Readers(file, { workers: 1 });
    const syntaxError = await readers.scan(toRowsQuery("select from nothing")).catch(getMessage);
    const write = await readers.scan(toRowsQuery("delete from lines returning id")).catch(getMessage);
    expect([syntaxError, write]).toEqual(['reader: near "from": syntax error', 'reader: near "delete": syntax error']);
    expect(await readers.scan(toRowsQuery("select 1"))).toEqual([[1]]);
    await readers.close();
  });

  test("[ST-18] a new scan is refused while too many are waiting, and closing answers the waiting ones", async () => {
    const readers = new Readers(file, { workers: 1 });
    const waiting = Array.from({ length: 256 }, () =>
      readers.scan(toRowsQuery("select 1")).catch((error: Error) => error),
    );
    const rejected = await readers.scan(toRowsQuery("select 1")).catch(getMessage);
    expect(rejected).toBe("Too many queries are running. Please retry.");
    await readers.close();
    const results = await Promise.all(waiting);
    expect(
      results.filter((result) => result instanceof Error && result.message === "the store is closing"),
    ).toHaveLength(256);
    expect(await readers.scan(toRowsQuery("select 1")).catch(getMessage)).toBe("the store is closing");
  });

  test("[ST-18] one person's expensive queries leave a Worker to other people", async () => {
    const readers = new Readers(file, { workers: 2 });
    const costly = `with recursive n(x) as (select 1 union all select x + 1 from n where x < 400000) select count(*) from n`;
    const scanAs = (user_id: string, sql: string, label: string) =>
      withOrigin(
        () => ({ user_id, ip: null, user_agent: "", request_id: NIL_UUID }),
        () => readers.scan(toRowsQuery(sql)).then(() => label),
      );
    const scans = [...["a", "b", "c"].map((label) => scanAs("ada", costly, label)), scanAs("bob", "select 1", "bob's")];
    expect(await Promise.race(scans)).toBe("bob's");
    expect(await Promise.all(scans)).toEqual(["a", "b", "c", "bob's"]);
    await readers.close();
  });

  test("[ST-11] closed readers have no open files, so that the next process does not find the database locked", async () => {
    write(5);
    const readers = new Readers(file, { workers: 2 });
    await Promise.all([
      readers.scan(toRowsQuery("select id from lines")),
      readers.scan(toRowsQuery("select id from lines")),
    ]);
    await readers.close();
    db.close();
    expect(countOpenFiles(temp.path)).toBe(0);
  });
});
