// Encrypts values of template variables: all values given to a version, because which of them are secret is known only after the template
// was read (rule TP-31), and everything about sensitive variables in its manifest (rule TP-37).
import { and, eq, gt, isNotNull, ne, sql } from "drizzle-orm";
import type { Encryption } from "#base/encryption.ts";
import { mapValues } from "#base/secrets/template-secrets.ts";
import type { Manifest, ManifestResource, ManifestVariable } from "#schema/templates/manifest.ts";
import { build, query, type Statement, updateBy } from "../engine/sql.ts";
import type { Store } from "../engine/store.ts";
import { template_versions } from "../schema/templates.ts";
import { workspace_builds, workspaces } from "../schema/workspaces.ts";
import { findSetting, upsertSetting } from "../settings.ts";

type Values = Readonly<Record<string, string>>;

const toSealContext = (version_id: string): string => `template_variables:${version_id}`;

/** Returns the stored form of a version's values; empty for none. */
export const sealVariables = (encryption: Encryption, version_id: string, values: Values): string =>
  Object.keys(values).length === 0 ? "" : encryption.seal(JSON.stringify(values), toSealContext(version_id));

/** Maps names to values. Throws `UnsealError` when they were encrypted with another key. */
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

/**
 * Returns the manifest as stored, with encrypted defaults of sensitive variables. A Terraform plan has inserted `values` and defaults:
 * agent texts that contain one are encrypted too, since no build reads them, and values marked as sensitive are removed.
 */
export const sealManifest = (
  encryption: Encryption,
  version_id: string,
  manifest: Manifest,
  values: Values,
): Manifest => {
  const { variables = [], resources, stop_resources } = manifest;
  const seal = (text: string): string =>
    text === "" || text.startsWith(encryption.prefix) ? text : encryption.seal(text, toSealContext(version_id));
  const secrets = variables
    .filter(({ sensitive }) => sensitive)
    .flatMap(({ name, default: given }) => [values[name] ?? "", String(given ?? "")])
    .filter((secret) => secret !== "");
  const sealIfSecret = (text: string): string => (secrets.some((secret) => text.includes(secret)) ? seal(text) : text);
  const isPlanned = manifest.provisioner === "terraform";
  return {
    ...manifest,
    ...(manifest.variables ? { variables: variables.map((one) => withSealedDefault(one, seal)) } : {}),
    resources: isPlanned ? resources.map((one) => withSealedTexts(one, sealIfSecret)) : resources,
    ...(isPlanned && stop_resources
      ? { stop_resources: stop_resources.map((one) => withSealedTexts(one, sealIfSecret)) }
      : {}),
  };
};

/** Returns the variables as the template declares them. Throws `UnsealError`. */
export const openDefaults = (
  encryption: Encryption,
  version_id: string,
  variables: readonly ManifestVariable[],
): ManifestVariable[] =>
  variables.map((one) =>
    one.sensitive && typeof one.default === "string" && one.default.startsWith(encryption.prefix)
      ? { ...one, default: encryption.open(one.default, toSealContext(version_id)) }
      : one,
  );

const withSealedDefault = (one: ManifestVariable, seal: (text: string) => string): ManifestVariable =>
  one.sensitive && one.default !== undefined ? { ...one, default: seal(String(one.default)) } : one;

const withSealedTexts = (resource: ManifestResource, seal: (text: string) => string): ManifestResource => ({
  ...resource,
  ...(resource.metadata
    ? { metadata: resource.metadata.map((one) => ({ ...one, value: one.sensitive ? "" : seal(one.value) })) }
    : {}),
  ...(resource.agents
    ? {
        agents: resource.agents.map((agent) => ({
          ...agent,
          ...(agent.env ? { env: mapValues(agent.env, seal) } : {}),
          ...(agent.scripts ? { scripts: agent.scripts.map((one) => ({ ...one, script: seal(one.script) })) } : {}),
          ...(agent.metadata ? { metadata: agent.metadata.map((one) => ({ ...one, script: seal(one.script) })) } : {}),
        })),
      }
    : {}),
});

const sensitiveColumns = {
  id: template_versions.id,
  manifest: template_versions.manifest,
  sealed_variable_values: template_versions.sealed_variable_values,
};
const isSensitive = and(
  isNotNull(template_versions.manifest),
  sql`${template_versions.manifest} like '%"sensitive":true%'`,
);

/** The version of a workspace's latest build, if its manifest contains something sensitive. Parameters: {workspace_id}. */
const findSensitive = query(
  build
    .select(sensitiveColumns)
    .from(workspaces)
    .innerJoin(workspace_builds, eq(workspace_builds.id, workspaces.latest_build_id))
    .innerJoin(template_versions, eq(template_versions.id, workspace_builds.template_version_id))
    .where(and(eq(workspaces.id, sql.placeholder("workspace_id")), isSensitive)),
);

/** Returns the values of the sensitive variables with which a workspace was built last. Throws `UnsealError`. */
export const loadSensitiveValues = async (
  store: Pick<Store, "get">,
  encryption: Encryption,
  workspace_id: string,
): Promise<string[]> => {
  const version = await store.get(findSensitive({ workspace_id }));
  if (!version) return [];
  const { variables = [] } = JSON.parse(version.manifest ?? "{}") as Pick<Manifest, "variables">;
  const given = openVariables(encryption, version);
  return openDefaults(encryption, version.id, variables)
    .filter(({ sensitive }) => sensitive)
    .map(({ name, default: other }) => given[name] ?? String(other ?? ""))
    .filter((value) => value !== "");
};

const listReadable = query(
  build
    .select({ id: template_versions.id, values: template_versions.variable_values })
    .from(template_versions)
    .where(ne(template_versions.variable_values, sql`'{}'`)),
);

/** The next versions, by ID, whose manifest contains something sensitive. Parameters: {after}. */
const listSensitive = query(
  build
    .select(sensitiveColumns)
    .from(template_versions)
    .where(and(gt(template_versions.id, sql.placeholder("after")), isSensitive))
    .orderBy(template_versions.id)
    .limit(100),
);

const changeVersion = updateBy(template_versions, template_versions.id);
const SEALED = "manifests_sealed";

/** Encrypts values that older versions stored in plain text. Called at every start, before anything reads them. */
export const sealReadableVariables = async (store: Store, encryption: Encryption): Promise<void> => {
  const rows = await store.all(listReadable());
  if (rows.length > 0) {
    await store.commit(
      rows.map(({ id, values }) =>
        changeVersion(id, { variable_values: {}, sealed_variable_values: sealVariables(encryption, id, values) }),
      ),
    );
  }
  if ((await store.get(findSetting({ key: SEALED }))) === undefined) await sealManifests(store, encryption);
};

/** Runs once per deployment, since every later import encrypts its manifest. */
const sealManifests = async (store: Store, encryption: Encryption): Promise<void> => {
  for (let after = ""; ; ) {
    const rows = await store.all(listSensitive({ after }));
    const last = rows.at(-1);
    if (!last) break;
    after = last.id;
    const changes = rows.flatMap((row): Statement[] => {
      const manifest = JSON.parse(row.manifest ?? "null") as Manifest | null;
      if (manifest === null) return [];
      const sealed = sealManifest(encryption, row.id, manifest, openVariables(encryption, row));
      return [changeVersion(row.id, { manifest: JSON.stringify(sealed) })];
    });
    await store.commit(changes);
  }
  await store.commit([upsertSetting({ key: SEALED, value: "true" })]);
};
