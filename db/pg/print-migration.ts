// `bun db/pg/print-migration.ts`: prints the tables of db/schema for PostgreSQL. Copy what a change adds to a new migration in
// db/pg/migrations; a test compares the result of all migrations with this.
import { formatTableStatements } from "./tables.ts";

/** Returns all tables as one migration. */
export const formatTablesMigration = (): string =>
  `-- Made by db/pg/print-migration.ts from db/schema.\n${formatTableStatements().join(";\n--> statement-breakpoint\n")};\n`;

if (import.meta.main) process.stdout.write(formatTablesMigration());
