// Parameter values in the latest build of each workspace created in a range (facts/platform 6.2). Runs in a reader Worker. Prebuilds are
// excluded, because no person chose their values.
import { tryParseJson } from "#base/json/read.ts";
import type { Manifest } from "#schema/templates/manifest.ts";
import { PREBUILDS_USER_ID } from "#schema/workspaces/prebuilds.ts";
import type { ReadRows } from "../../engine/rows.ts";

const SQL = `
  select w.template_id, b.template_version_id, p.name, p.value, count(*)
  from workspaces w
  join workspace_builds b on b.id = (
    select id from workspace_builds
    where workspace_id = w.id and created_at >= ? and created_at < ?
    order by build_number desc limit 1)
  join workspace_build_parameters p on p.build_id = b.id
  where w.owner_id <> ? and (cast(? as text) is null or w.template_id in (select value from json_each(?)))
  group by 1, 2, 3, 4`;

type Option = { description: string; icon: string; name: string; value: string };
type Parameter = { name: string; display_name: string; description: string; type: string; options: Option[] };
/** `toShown` returns what the report shows of a value. */
type KnownParameter = Parameter & { toShown: (value: string) => string };
type Usage = Parameter & { template_ids: Set<string>; values: Map<string, number>; newest: number };

const VERSION_SQL = "select manifest, created_at from template_versions where id = ?";

/**
 * Returns an entry for each name, type and set of options of a template, with the texts of its newest version. Templates share an entry if
 * these texts are equal too.
 */
export const parametersUsage = async (
  read: ReadRows,
  { from, to, templates }: { from: number; to: number; templates?: readonly string[] | undefined },
): Promise<object[]> => {
  const ids = templates ? JSON.stringify(templates) : null;
  const rows = (await read(SQL, [from, to, PREBUILDS_USER_ID, ids, ids])) as [string, string, string, string, number][];
  const versions = new Map<string, { parameters: Map<string, KnownParameter>; created_at: number }>();
  const loadVersion = async (id: string) => {
    let version = versions.get(id);
    if (!version) {
      const [manifest, created_at] = ((await read(VERSION_SQL, [id]))[0] ?? [null, 0]) as [string | null, number];
      version = { parameters: parseParameters(manifest), created_at };
      versions.set(id, version);
    }
    return version;
  };
  const found = new Map<string, Usage>();
  for (const [template_id, version_id, name, value, count] of rows) {
    const { parameters, created_at } = await loadVersion(version_id);
    const declared = parameters.get(name);
    if (!declared) continue;
    const { toShown, ...parameter } = declared;
    const shown = toShown(value);
    const key = JSON.stringify([name, parameter.type, parameter.options, template_id]);
    let usage = found.get(key);
    if (!usage) {
      usage = { ...parameter, template_ids: new Set(), values: new Map(), newest: created_at };
      found.set(key, usage);
    }
    if (created_at > usage.newest) Object.assign(usage, parameter, { newest: created_at });
    usage.template_ids.add(template_id);
    usage.values.set(shown, (usage.values.get(shown) ?? 0) + count);
  }
  const sortedEntries = [...mergeTemplates(found.values())].sort(([a], [b]) => (a < b ? -1 : 1));
  return sortedEntries.map(([, { description, display_name, name, options, template_ids, type, values }]) => ({
    description,
    display_name,
    name,
    options,
    template_ids: [...template_ids].sort(),
    type,
    values: [...values].sort(([a], [b]) => (a < b ? -1 : 1)).map(([value, count]) => ({ count, value })),
  }));
};

/** Merges the usage of equal parameters in several templates. Changes the given usage. */
const mergeTemplates = (usages: Iterable<Usage>): Map<string, Usage> => {
  const merged = new Map<string, Usage>();
  for (const usage of usages) {
    const { name, type, options, display_name, description } = usage;
    const key = JSON.stringify([name, type, options, display_name, description]);
    const existing = merged.get(key);
    if (!existing) merged.set(key, usage);
    else {
      for (const id of usage.template_ids) existing.template_ids.add(id);
      for (const [value, count] of usage.values) existing.values.set(value, (existing.values.get(value) ?? 0) + count);
    }
  }
  return merged;
};

/** Reports show only the link of a repository's plan, because the plan contains its configuration, which may be private. */
const toLink = (plan: string): string => {
  const found = tryParseJson(plan) as { readonly url?: unknown } | undefined;
  return typeof found?.url === "string" ? found.url : "";
};

const parseParameters = (manifest: string | null): Map<string, KnownParameter> => {
  const { parameters = [] } = (manifest === null ? {} : JSON.parse(manifest)) as Partial<Manifest>;
  return new Map(
    parameters.map(({ name, display_name = "", description = "", type = "string", options = [], form_type }) => [
      name,
      {
        toShown: (value: string) => (form_type === "repository" && value.startsWith("{") ? toLink(value) : value),
        name,
        display_name,
        description,
        type,
        options: options.map(({ name: label, value, description: text = "", icon = "" }) => ({
          description: text,
          icon,
          name: label,
          value,
        })),
      },
    ]),
  );
};
