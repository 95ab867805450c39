// `bun db/pg/print-migration.ts`: prints the tables of db/schema for PostgreSQL. Copy what a change adds to a new migration in
// db/pg/migrations; a test compares the result of all migrations with this.
import { tableStatements } from "./tables.ts";

/** Returns all tables as one migration. */
export const tablesMigration = (): string =>
  `-- Made by db/pg/print-migration.ts from db/schema.\n${tableStatements().join(";\n--> statement-breakpoint\n")};\n`;

if (import.meta.main) process.stdout.write(tablesMigration());
