// PostgreSQL's migrations in order. The first creates the tables of release 0.2.0, the oldest version that upgrades directly.
import { type Migration, numberMigrations } from "../engine/migration.ts";
import { readStepFiles } from "../step-files.ts" with { type: "macro" };

/** The schema version of release 0.2.0, whose migrations were merged into one. */
const RELEASE_0_2_0 = 4;

export const PG_MIGRATIONS: readonly Migration[] = numberMigrations(RELEASE_0_2_0, readStepFiles("pg/migrations"));
