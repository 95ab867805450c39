// Moving an installation into PostgreSQL and back: completely, compared, and without changes if it is rejected.
import { expect } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { SQL } from "bun";
import { CopyError } from "#db/pg/copied-tables.ts";
import { copyIntoPostgres } from "#db/pg/copy-in.ts";
import { copyIntoSqlite } from "#db/pg/copy-out.ts";
import { Client } from "#src/client.ts";
import { startCluster } from "#test/support/cluster.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { createDatabase } from "#test/support/postgres.ts";
import { ADMIN, startTestServer, tempDirectory } from "#test/support/server.ts";
import { checksumTables, makeUsedDirectory, needsSqlite, searchChats } from "./used-directory.ts";

testNeeding(
  [needs.postgres, needsSqlite],
  "[CL-10] a migration into PostgreSQL and back preserves every row and upload",
  async () => {
    const { directory, chat } = await makeUsedDirectory();
    using _ = directory;
    using copy = tempDirectory();
    const database = await createDatabase();
    const before = checksumTables(directory.path);
    const options = { url: database.url, now: Date.now() };
    const moved = await copyIntoPostgres({ directory: directory.path, ...options });
    expect(moved.files).toBe(2);
    expect(moved.rows).toBeGreaterThan(30);
    expect(checksumTables(directory.path)).toEqual(before);
    const refused = await copyIntoPostgres({ directory: directory.path, ...options }).catch((error) => error);
    expect(refused).toBeInstanceOf(CopyError);
    expect(refused.message).toContain("holds an installation already");

    expect(await copyIntoSqlite({ directory: copy.path, ...options })).toEqual(moved);
    expect(checksumTables(copy.path)).toEqual(before);
    expect(copyIntoSqlite({ directory: copy.path, ...options })).rejects.toThrow("holds a database already");
    const sql = new SQL(database.url, { max: 1 });
    await sql`insert into settings (key, value) values ('encryption_key', 'v1.0123abcd.')`;
    await sql.close();
    const [otherDirectory, key] = [join(copy.path, "other"), "5".repeat(64)];
    await expect(copyIntoSqlite({ directory: otherDirectory, ...options, key })).rejects.toThrow(
      "is not the cluster's",
    );
    expect(existsSync(otherDirectory)).toBe(false);
    await Bun.write(join(copy.path, "encryption.key"), readFileSync(join(directory.path, "encryption.key")));
    await using server = await startTestServer({ directory: copy.path });
    const client = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
    expect(await searchChats(client, "jumping")).toEqual([chat]);
    expect(await searchChats(client, "elephant")).toEqual([]);
    await database.remove();
  },
);

testNeeding(
  [needs.postgres, needsSqlite],
  "[CL-10] a node continues with the migrated data, and no migration disturbs it",
  async () => {
    const { directory, chat } = await makeUsedDirectory();
    using _ = directory;
    await using cluster = await startCluster();
    await copyIntoPostgres({ directory: directory.path, url: cluster.database.url, now: Date.now() });
    const key = readFileSync(join(directory.path, "encryption.key"), "utf8").trim();
    const node = await cluster.start(1, { env: { SLIPWAY_ENCRYPTION_KEY: key } });
    const client = await new Client(node.url).signIn(ADMIN.email, ADMIN.password);
    expect(await searchChats(client, "fox")).toEqual([chat]);
    // IDs of new rows continue after the moved ones.
    await client.post("/api/v2/users", { email: "new@example.com", username: "new", password: "a-long-Enough-secret" });
    using copy = tempDirectory();
    const options = { directory: copy.path, url: cluster.database.url, now: Date.now() };
    expect(copyIntoSqlite(options)).rejects.toThrow("a node runs on this PostgreSQL database");
    expect(copyIntoPostgres({ ...options, directory: directory.path })).rejects.toThrow("a node runs on this");
    expect((await client.get<{ username: string }>("/api/v2/users/me")).username).toBe(ADMIN.username);
  },
);
