// A program that is one database migration ahead: this source with an additional migration. It simulates the newer build whose data the
// binary must refuse, and from which it must be able to go back. A program that is one migration behind cannot be simulated in this way,
// because this source already reads what the newest migration adds.
import { type Migration, toNewestVersion } from "#db/engine/migration.ts";
import { MIGRATIONS } from "#db/engine/migrations.ts";

const steps = MIGRATIONS as Migration[];
steps.push({
  name: "of_the_next_build",
  sql: "CREATE TABLE `of_the_next_build` (`id` text PRIMARY KEY NOT NULL)",
  version: toNewestVersion(MIGRATIONS) + 1,
});

await import("../../src/main.ts");
