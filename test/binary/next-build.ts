// The program one step of the database ahead: this source with a further migration. It plays the newer build that the binary must refuse
// the data of, and go back from. A program one step behind cannot be played so: this source already reads what the newest step brings.
import { type Migration, newestVersion } from "#db/engine/migration.ts";
import { MIGRATIONS } from "#db/engine/migrations.ts";

const steps = MIGRATIONS as Migration[];
steps.push({
  name: "of_the_next_build",
  sql: "CREATE TABLE `of_the_next_build` (`id` text PRIMARY KEY NOT NULL)",
  version: newestVersion(MIGRATIONS) + 1,
});

await import("../../src/main.ts");
