// `bun db/pg/print-migration.ts`: prints what db/pg/migrations/0000_tables.sql holds, made from the tables of db/schema. The file may be
// made anew until a version with it is released; from then on a change of the tables is a step of its own.
import { tableStatements } from "./tables.ts";

/** The text of the file. */
export const tablesMigration = (): string =>
  `-- Made by db/pg/print-migration.ts from db/schema.\n${tableStatements().join(";\n--> statement-breakpoint\n")};\n`;

if (import.meta.main) process.stdout.write(tablesMigration());
