// The steps of SQLite's schema in order. The first one makes the tables of release 0.2.0, the oldest version that upgrades directly.
import { readStepFiles } from "../step-files.ts" with { type: "macro" };
import { type Migration, numbered } from "./migration.ts";

/** The version of the schema in release 0.2.0. Its steps became one. */
const RELEASE_0_2_0 = 21;

export const MIGRATIONS: readonly Migration[] = numbered(RELEASE_0_2_0, readStepFiles("migrations"));
