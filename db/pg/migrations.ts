// The steps of PostgreSQL's schema in order. The first one makes the tables of release 0.2.0, the oldest version that upgrades directly.
import { type Migration, numbered } from "../engine/migration.ts";
import { readStepFiles } from "../step-files.ts" with { type: "macro" };

/** The version of the schema in release 0.2.0. Its steps became one. */
const RELEASE_0_2_0 = 4;

export const PG_MIGRATIONS: readonly Migration[] = numbered(RELEASE_0_2_0, readStepFiles("pg/migrations"));
