// The program one step of the database ahead: this source with a further migration. It plays the newer build that the binary must refuse
// the data of, and go back from. A program one step behind cannot be played so: this source already reads what the newest step brings.
import { MIGRATIONS } from "#db/engine/migrations.ts";

const steps = MIGRATIONS as { name: string; sql: string }[];
steps.push({ name: "of_the_next_build", sql: "CREATE TABLE `of_the_next_build` (`id` text PRIMARY KEY NOT NULL)" });

await import("../../src/main.ts");
