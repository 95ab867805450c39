// This source with an additional database migration, which simulates a newer build. The binary must refuse its data, and must be able to
// restore the earlier data. A build with one migration less cannot be simulated in this way, because this source reads what the newest
// migration adds.
import { type Migration, toNewestVersion } from "#db/engine/migration.ts";
import { MIGRATIONS } from "#db/engine/migrations.ts";

const migrations = MIGRATIONS as Migration[];
migrations.push({
  name: "of_the_next_build",
  sql: "CREATE TABLE `of_the_next_build` (`id` text PRIMARY KEY NOT NULL)",
  version: toNewestVersion(MIGRATIONS) + 1,
});

await import("../../src/main.ts");
