// SQLite's migrations in order. The first creates the tables of release 0.2.0, the oldest version that upgrades directly.
import { readStepFiles } from "../step-files.ts" with { type: "macro" };
import { type Migration, numberMigrations } from "./migration.ts";

/** The schema version of release 0.2.0, whose migrations were merged into one. */
const RELEASE_0_2_0 = 21;

export const MIGRATIONS: readonly Migration[] = numberMigrations(RELEASE_0_2_0, readStepFiles("migrations"));
