// Shared by the tests of `migrate`: the data directory of a used server, and checksums of its tables.
import { Database } from "bun:sqlite";
import { expect } from "bun:test";
import { join } from "node:path";
import { Checksum, listCopiedTables } from "#db/pg/copied-tables.ts";
import { iterateTableRows } from "#db/pg/copy-sqlite.ts";
import { Client } from "#src/client.ts";
import { createChat } from "#test/support/chats.ts";
import { usesPostgres } from "#test/support/postgres-server.ts";
import { ADMIN, startTestServer, tempDirectory } from "#test/support/server.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";

/** Test servers on SQLite have a data directory that can be moved. */
export const needsSqlite = { found: !usesPostgres, reason: "needs servers on SQLite", file: "" };

type Page = { chats: { id: string }[] };

/** Returns the chats that a search finds. */
export const searchChats = async (client: Client, words: string): Promise<string[]> => {
  const response = await client.get<Page | { id: string }[]>(
    `/api/v2/chats?q=${encodeURIComponent(`search:"${words}"`)}`,
  );
  return (Array.isArray(response) ? response : response.chats).map(({ id }) => id);
};

/** Creates the data directory of a server that was used and then stopped. */
export const makeUsedDirectory = async () => {
  const temp = tempDirectory();
  let chat = "";
  {
    await using server = await startTestServer({ directory: temp.path });
    const client = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
    await makeTemplate(client);
    const me = await client.get<{ organization_ids: string[] }>("/api/v2/users/me");
    const world = { owner: client, organization_id: me.organization_ids[0] as string };
    chat = (await createChat(world, "The quick brown foxes were jumping over a hedge")).id;
    await createChat(world, "Something else altogether");
    await until(async () => (await client.get<{ status: string }>(`/api/v2/chats/${chat}`)).status === "waiting");
    expect(await searchChats(client, "fox")).toEqual([chat]);
  }
  return { directory: temp, chat };
};

/** Returns each table's number of rows and checksum. */
export const checksumTables = (directory: string): Record<string, string> => {
  using db = new Database(join(directory, "slipway.db"), { readonly: true });
  return Object.fromEntries(
    listCopiedTables().map((table) => {
      const sum = new Checksum();
      for (const row of iterateTableRows(db, table)) sum.add(row);
      return [table.name, sum.text];
    }),
  );
};
