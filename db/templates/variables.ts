// The values given to a template's variables, sealed: which of them are secrets is known only once the template has been read, so all of
// them are kept as if they were (rule TP-31).
import { ne, sql } from "drizzle-orm";
import type { Encryption } from "#base/encryption.ts";
import { build, query, updateBy } from "../engine/sql.ts";
import type { Store } from "../engine/store.ts";
import { template_versions } from "../schema/templates.ts";

type Values = Readonly<Record<string, string>>;

const toSealContext = (version_id: string): string => `template_variables:${version_id}`;

/** What is stored of the values given to a version; empty for none. */
export const sealVariables = (encryption: Encryption, version_id: string, values: Values): string =>
  Object.keys(values).length === 0 ? "" : encryption.seal(JSON.stringify(values), toSealContext(version_id));

/** Name -> value. Throws `UnsealError` when they were sealed with another key. */
export const openVariables = (
  encryption: Encryption,
  version: { readonly id: string; readonly sealed_variable_values: string },
): Record<string, string> =>
  version.sealed_variable_values === ""
    ? {}
    : (JSON.parse(encryption.open(version.sealed_variable_values, toSealContext(version.id))) as Record<
        string,
        string
      >);

const listReadable = query(
  build
    .select({ id: template_versions.id, values: template_versions.variable_values })
    .from(template_versions)
    .where(ne(template_versions.variable_values, sql`'{}'`)),
);

const sealRow = updateBy(template_versions, template_versions.id);

/** Seals what versions before 0.2.0 have left readable. Called at every start, before anything reads them. */
export const sealReadableVariables = async (store: Store, encryption: Encryption): Promise<void> => {
  const rows = await store.all(listReadable());
  if (rows.length === 0) return;
  await store.commit(
    rows.map(({ id, values }) =>
      sealRow(id, { variable_values: {}, sealed_variable_values: sealVariables(encryption, id, values) }),
    ),
  );
};
