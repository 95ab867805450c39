// Translates a statement of a SQLite migration to PostgreSQL: prints the same table, column or index from db/schema. Data migrations must
// be written by hand.
import {
  formatColumn,
  formatForeignKeys,
  formatIdentity,
  formatIndices,
  formatTable,
  listTableConfigs,
} from "./tables.ts";

/** New and removed tables, columns and indexes, in the form that Drizzle Kit writes. */
const TRANSLATIONS: readonly [RegExp, (...names: string[]) => string[]][] = [
  [
    /^create table `(\w+)`/i,
    (table = "") => [
      formatTable(requireTable(table)),
      ...formatForeignKeys(requireTable(table)),
      ...formatIdentity(requireTable(table)),
    ],
  ],
  [/^create (?:unique )?index `(\w+)` on `(\w+)`/i, (index = "", table = "") => [formatIndex(table, index)]],
  [
    /^alter table `(\w+)` add `(\w+)`/i,
    (table = "", column = "") => [
      `alter table "${table}" add column ${formatNewColumn(table, column)}`,
      ...formatKeys(table, column),
    ],
  ],
  [
    /^alter table `(\w+)` drop column `(\w+)`/i,
    (table = "", column = "") => [`alter table "${table}" drop column "${column}"`],
  ],
  [/^drop (table|index) `(\w+)`/i, (kind = "", name = "") => [`drop ${kind.toLowerCase()} "${name}"`]],
];

/** Returns the statements for PostgreSQL. Throws for a statement that must be translated by hand. */
export const printStep = (sqlite: string): string[] => {
  const statement = sqlite.trim();
  if (statement === "") return [];
  for (const [pattern, translate] of TRANSLATIONS) {
    const [, ...names] = pattern.exec(statement) ?? [];
    if (names.length > 0) return translate(...names);
  }
  throw new Error(`db/pg/print-step.ts cannot print this statement; write PostgreSQL's step by hand: ${statement}`);
};

const requireTable = (table: string): ReturnType<typeof listTableConfigs>[number] => {
  const found = listTableConfigs().find(({ name }) => name === table);
  if (!found) throw new Error(`db/schema has no table ${table}`);
  return found;
};

const formatNewColumn = (table: string, column: string): string => {
  const found = requireTable(table).columns.find(({ name }) => name === column);
  if (!found) throw new Error(`db/schema has no column ${table}.${column}`);
  return formatColumn(found);
};

const formatKeys = (table: string, column: string): string[] =>
  formatForeignKeys(requireTable(table)).filter((statement) => statement.includes(`foreign key ("${column}")`));

const formatIndex = (table: string, index: string): string => {
  const found = formatIndices(requireTable(table)).find((statement) => statement.includes(`index "${index}" on `));
  if (!found) throw new Error(`db/schema has no index ${index}`);
  return found;
};
