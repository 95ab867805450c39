// `bun db/pg/print-migration.ts`: prints the tables of db/schema for PostgreSQL. After a change, copy the new statements to a migration
// in db/pg/migrations. A test compares the result of all migrations with these tables.
import { formatTableStatements } from "./tables.ts";

/** Returns all tables as one migration. */
export const formatTablesMigration = (): string =>
  `-- Made by db/pg/print-migration.ts from db/schema.\n${formatTableStatements().join(";\n--> statement-breakpoint\n")};\n`;

if (import.meta.main) process.stdout.write(formatTablesMigration());
