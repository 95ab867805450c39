// `bun db/pg/print-migration.ts`: prints the tables of db/schema as PostgreSQL makes them. What a change of them adds is copied from there into
// a step of its own in db/pg/migrations; a test compares where all steps lead with this.
import { tableStatements } from "./tables.ts";

/** All tables in one step. */
export const tablesMigration = (): string =>
  `-- Made by db/pg/print-migration.ts from db/schema.\n${tableStatements().join(";\n--> statement-breakpoint\n")};\n`;

if (import.meta.main) process.stdout.write(tablesMigration());
