// Parameter values that name a repository: a link is read once, when it is set, and the build stores the resulting plan. A plan that
// somebody gives, for example to copy a workspace, is read again like a link: it also names an image, which may contain a private
// repository.
import { invalidField } from "#base/errors.ts";
import type { Manifest, ManifestParameter } from "#schema/templates/manifest.ts";
import { parsePlan, REPOSITORY_FORM, type RepositoryAsked, type RepositoryPlan } from "#schema/templates/repository.ts";
import type { Repositories } from "./repositories.ts";

/** Returns the first parameter of a template that takes a repository. */
export const findRepositoryParameter = (manifest: Manifest): ManifestParameter | undefined =>
  manifest.parameters?.find(({ form_type }) => form_type === REPOSITORY_FORM);

/** Maximum length of a parameter value. */
const MAX_VALUE_CHARS = 65_536;

/**
 * Replaces each new link or plan among the values by a plan that is read with the accounts of `reader_id`. `made`: a plan that was read for
 * this request. Throws 400 when a repository cannot be read or used.
 */
export const withPlans = async (
  { repositories }: { readonly repositories: Repositories },
  manifest: Manifest,
  values: Readonly<Record<string, string>>,
  {
    reader_id,
    previous = {},
    made,
  }: {
    readonly reader_id: string;
    readonly previous?: Readonly<Record<string, string>> | undefined;
    readonly made?: string | undefined;
  },
): Promise<Record<string, string>> => {
  const planned = { ...values };
  for (const { name, form_type } of manifest.parameters ?? []) {
    const value = values[name] ?? "";
    if (value === "" || value === previous[name] || value === made) continue;
    const givenPlan = value.startsWith("{") ? parsePlan(value) : undefined;
    if (form_type !== REPOSITORY_FORM) {
      // A later version of the template could use it as one.
      if (givenPlan) throw invalidField(name, "is the plan of a repository, which this parameter doesn't take");
      continue;
    }
    if (value.startsWith("{") && !givenPlan)
      throw invalidField(name, "is not a plan of this version of Slipway; give the repository's link instead");
    const requested = givenPlan ? toRequest(givenPlan) : { url: value };
    const plan = JSON.stringify(await repositories.plan(reader_id, { requested, field: name }));
    if (plan.length > MAX_VALUE_CHARS) throw invalidField(name, "the repository's configuration is too large");
    planned[name] = plan;
  }
  return planned;
};

/** Returns the request that a plan was read for. */
const toRequest = ({ url, ref, ref_kind, path, configuration, full_history }: RepositoryPlan): RepositoryAsked => ({
  url,
  ...(ref_kind === "branch" || ref_kind === "tag" ? { branch: ref.replace(/^refs\/(?:heads|tags)\//, "") } : {}),
  ...(ref_kind === "commit" ? { commit: ref } : {}),
  ...(ref_kind === "pull_request" ? { pull_request: Number(/\d+/.exec(ref)?.[0]) } : {}),
  ...(path === undefined ? {} : { path }),
  ...(configuration === undefined ? {} : { configuration }),
  ...(full_history ? { full_history } : {}),
});
