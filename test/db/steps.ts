// A longer list of migrations than the product's, with what real ones do: a new column, and a table rebuilt in Drizzle Kit's way. As a
// program (`steps.ts <directory> <failpoint>`) it migrates a directory and dies at the failpoint.
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { armFailpoint } from "#base/failpoint.ts";
import { migrate } from "#db/engine/migrate.ts";
import { type Migration, numberMigrations } from "#db/engine/migration.ts";

export const STEPS: readonly Migration[] = numberMigrations(1, [
  [
    "0000_pets",
    `CREATE TABLE owners (id integer PRIMARY KEY NOT NULL, name text NOT NULL);
--> statement-breakpoint
CREATE TABLE pets (
  id integer PRIMARY KEY NOT NULL,
  owner integer NOT NULL REFERENCES owners(id) ON DELETE SET NULL,
  name text NOT NULL
);`,
  ],
  ["0001_ages", "ALTER TABLE pets ADD age integer DEFAULT 0 NOT NULL;"],
  [
    "0002_owners_rebuilt",
    `PRAGMA foreign_keys=OFF;--> statement-breakpoint
CREATE TABLE __new_owners (id integer PRIMARY KEY NOT NULL, name text NOT NULL, email text DEFAULT '' NOT NULL);
--> statement-breakpoint
INSERT INTO __new_owners (id, name) SELECT id, name FROM owners;--> statement-breakpoint
DROP TABLE owners;--> statement-breakpoint
ALTER TABLE __new_owners RENAME TO owners;--> statement-breakpoint
PRAGMA foreign_keys=ON;`,
  ],
]);

if (import.meta.main) {
  const [directory = "", failpoint = ""] = process.argv.slice(2);
  armFailpoint(failpoint);
  const db = new Database(join(directory, "slipway.db"), { create: true });
  db.run("pragma journal_mode=wal");
  db.run("pragma foreign_keys=on");
  migrate(db, { directory, now: 1_700_000_000_000, migrations: STEPS });
  db.close();
}
