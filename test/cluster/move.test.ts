// An installation moves into PostgreSQL and back: all of it, compared, and nothing where it is refused.
import { Database } from "bun:sqlite";
import { expect } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Checksum, CopyError, copiedTables } from "#db/pg/copied-tables.ts";
import { copyIntoPostgres } from "#db/pg/copy-in.ts";
import { copyIntoSqlite } from "#db/pg/copy-out.ts";
import { rowsOfTable } from "#db/pg/copy-sqlite.ts";
import { Client } from "#src/client.ts";
import { createChat } from "#test/support/chats.ts";
import { startCluster } from "#test/support/cluster.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { createDatabase } from "#test/support/postgres.ts";
import { onPostgres } from "#test/support/postgres-server.ts";
import { ADMIN, startTestServer, tempDirectory } from "#test/support/server.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";

/** Servers of this process keep their data in a data directory, from which it is moved. */
const ownFile = { found: !onPostgres, reason: "needs servers on SQLite", file: "" };

type Page = { chats: { id: string }[] };
const found = async (client: Client, words: string): Promise<string[]> => {
  const answer = await client.get<Page | { id: string }[]>(
    `/api/v2/chats?q=${encodeURIComponent(`search:"${words}"`)}`,
  );
  return (Array.isArray(answer) ? answer : answer.chats).map(({ id }) => id);
};

/** A server that has been used, and is stopped. */
const usedDirectory = async () => {
  const place = tempDirectory();
  let chat = "";
  {
    await using server = await startTestServer({ directory: place.path });
    const client = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
    await makeTemplate(client);
    const me = await client.get<{ organization_ids: string[] }>("/api/v2/users/me");
    const world = { owner: client, organization_id: me.organization_ids[0] as string };
    chat = (await createChat(world, "The quick brown foxes were jumping over a hedge")).id;
    await createChat(world, "Something else altogether");
    await until(async () => (await client.get<{ status: string }>(`/api/v2/chats/${chat}`)).status === "waiting");
    expect(await found(client, "fox")).toEqual([chat]);
  }
  return { place, chat };
};

const sumsOf = (directory: string): Record<string, string> => {
  using db = new Database(join(directory, "slipway.db"), { readonly: true });
  return Object.fromEntries(
    copiedTables().map((table) => {
      const sum = new Checksum();
      for (const row of rowsOfTable(db, table)) sum.add(row);
      return [table.name, sum.text];
    }),
  );
};

testNeeding(
  [needs.postgres, ownFile],
  "[CL-10] into PostgreSQL and back again: every row and upload is as it was",
  async () => {
    const { place, chat } = await usedDirectory();
    using _ = place;
    using back = tempDirectory();
    const database = await createDatabase();
    const before = sumsOf(place.path);
    const options = { url: database.url, now: Date.now() };
    const moved = await copyIntoPostgres({ directory: place.path, ...options });
    expect(moved.files).toBe(2);
    expect(moved.rows).toBeGreaterThan(30);
    expect(sumsOf(place.path)).toEqual(before);
    const refused = await copyIntoPostgres({ directory: place.path, ...options }).catch((error) => error);
    expect(refused).toBeInstanceOf(CopyError);
    expect(refused.message).toContain("holds an installation already");

    expect(await copyIntoSqlite({ directory: back.path, ...options })).toEqual(moved);
    expect(sumsOf(back.path)).toEqual(before);
    expect(copyIntoSqlite({ directory: back.path, ...options })).rejects.toThrow("holds a database already");
    await Bun.write(join(back.path, "encryption.key"), readFileSync(join(place.path, "encryption.key")));
    await using server = await startTestServer({ directory: back.path });
    const client = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
    expect(await found(client, "jumping")).toEqual([chat]);
    expect(await found(client, "elephant")).toEqual([]);
    await database.remove();
  },
  120_000,
);

testNeeding(
  [needs.postgres, ownFile],
  "[CL-10] a node goes on with what was moved, and no move disturbs it",
  async () => {
    const { place, chat } = await usedDirectory();
    using _ = place;
    await using cluster = await startCluster();
    await copyIntoPostgres({ directory: place.path, url: cluster.database.url, now: Date.now() });
    const key = readFileSync(join(place.path, "encryption.key"), "utf8").trim();
    const node = await cluster.start(1, { env: { SLIPWAY_ENCRYPTION_KEY: key } });
    const client = await new Client(node.url).signIn(ADMIN.email, ADMIN.password);
    expect(await found(client, "fox")).toEqual([chat]);
    // New rows are numbered behind those that were moved.
    await client.post("/api/v2/users", { email: "new@example.com", username: "new", password: "a-long-Enough-secret" });
    using back = tempDirectory();
    const options = { directory: back.path, url: cluster.database.url, now: Date.now() };
    expect(copyIntoSqlite(options)).rejects.toThrow("a node runs on this PostgreSQL database");
    expect(copyIntoPostgres({ ...options, directory: place.path })).rejects.toThrow("a node runs on this");
    expect((await client.get<{ username: string }>("/api/v2/users/me")).username).toBe(ADMIN.username);
  },
  120_000,
);
