// This source with an additional database migration. It simulates a newer build: the binary must refuse its data, and must be able to
// restore the earlier data. A build with one migration less cannot be simulated like this, because this source reads what the newest
// migration adds.
import { type Migration, toNewestVersion } from "#db/engine/migration.ts";
import { MIGRATIONS } from "#db/engine/migrations.ts";

const steps = MIGRATIONS as Migration[];
steps.push({
  name: "of_the_next_build",
  sql: "CREATE TABLE `of_the_next_build` (`id` text PRIMARY KEY NOT NULL)",
  version: toNewestVersion(MIGRATIONS) + 1,
});

await import("../../src/main.ts");
