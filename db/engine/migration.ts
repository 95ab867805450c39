// Schema migrations, and which databases a list of them can upgrade.

export type Migration = {
  readonly name: string;
  readonly sql: string;
  /** The value of `migrations.version` after this migration. */
  readonly version: number;
};

/** The database needs another version of the program. The message says which version, and how to continue. */
export class DatabaseVersionError extends Error {
  override readonly name = "DatabaseVersionError";
}

/** Numbers the files as migrations. The first takes an empty database to version `first`; each other one adds 1. */
export const numberMigrations = (
  first: number,
  files: readonly (readonly [name: string, sql: string])[],
): Migration[] => files.map(([name, sql], index) => ({ name, sql, version: first + index }));

/** Returns the version of a database after all migrations. */
export const toNewestVersion = (migrations: readonly Migration[]): number => migrations.at(-1)?.version ?? 0;

/** Returns the migrations that a database of this version is missing, in order. Version 0 is an empty database. */
export const listMissingMigrations = (migrations: readonly Migration[], current: number): readonly Migration[] =>
  migrations.filter(({ version }) => version > current);

/** Returns why this program cannot use a database of this version and what to do, or undefined if it can. */
export const findVersionProblem = (migrations: readonly Migration[], current: number): string | undefined => {
  const [oldest, newest] = [migrations[0]?.version ?? 0, toNewestVersion(migrations)];
  if (current > newest) {
    return (
      `this database was written by a newer Slipway (schema ${current}, this one knows ${newest}). ` +
      "Start the newer version again, or restore a backup made before the upgrade."
    );
  }
  if (current === 0 || current >= oldest) return undefined;
  return (
    `this database was written by a Slipway older than 0.2.0 (schema ${current}, this one upgrades from ${oldest}). ` +
    "Start version 0.2.0 on it once, then this version."
  );
};
