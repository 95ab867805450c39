// The contract suite over a real PostgreSQL.
import { openPgStore, type PgStore } from "#db/pg/store.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { createDatabase } from "#test/support/postgres.ts";
import { describeStoreContract } from "../contract.ts";

if (needs.postgres.found) {
  describeStoreContract("PgStore", async () => {
    const database = await createDatabase();
    return {
      open: (options = {}): Promise<PgStore> => openPgStore({ url: database.url, now: 0, fatal: () => {}, ...options }),
      // After the crash, only connections of the dead node remain, and they end.
      crash: () => database.cutConnections(),
      remove: () => database.remove(),
    };
  });
} else {
  testNeeding([needs.postgres], "[ST-8] the store's contract, kept by PgStore", async () => {});
}
