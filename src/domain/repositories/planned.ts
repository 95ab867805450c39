// Parameter values that name a repository: a link is read once, when it is set, and the build stores the resulting plan.
import { invalidField } from "#base/errors.ts";
import type { Manifest, ManifestParameter } from "#schema/templates/manifest.ts";
import { parsePlan, REPOSITORY_FORM } from "#schema/templates/repository.ts";
import type { Repositories } from "./repositories.ts";

/** Returns the first parameter of a template that takes a repository. */
export const findRepositoryParameter = (manifest: Manifest): ManifestParameter | undefined =>
  manifest.parameters?.find(({ form_type }) => form_type === REPOSITORY_FORM);

/** Maximum length of a parameter value. */
const MAX_VALUE = 65_536;

/** Replaces each new link among the values by its plan, read with the accounts of `reader_id`. Throws 400 when a link cannot be read or used. */
export const withPlans = async (
  { repositories }: { readonly repositories: Repositories },
  manifest: Manifest,
  values: Readonly<Record<string, string>>,
  {
    reader_id,
    previous = {},
  }: { readonly reader_id: string; readonly previous?: Readonly<Record<string, string>> | undefined },
): Promise<Record<string, string>> => {
  const planned = { ...values };
  for (const { name, form_type } of manifest.parameters ?? []) {
    const value = values[name] ?? "";
    if (form_type !== REPOSITORY_FORM || value === "" || value === previous[name] || parsePlan(value)) continue;
    if (value.startsWith("{"))
      throw invalidField(name, "is not a plan of this version of Slipway; give the repository's link instead");
    const plan = JSON.stringify(await repositories.plan(reader_id, { asked: { url: value }, field: name }));
    if (plan.length > MAX_VALUE) throw invalidField(name, "the repository's configuration is too large");
    planned[name] = plan;
  }
  return planned;
};
