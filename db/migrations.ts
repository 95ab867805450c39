// The steps in order. A released step is never edited; `bun run migration` writes the next one, which is then listed here.

import type { Migration } from "./migrate.ts";
import init from "./migrations/0000_init.sql" with { type: "text" };
import jobAttempts from "./migrations/0001_job_attempts.sql" with { type: "text" };

export const MIGRATIONS: readonly Migration[] = [
  { name: "0000_init", sql: init },
  { name: "0001_job_attempts", sql: jobAttempts },
];
