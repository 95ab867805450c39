// Reads a repository for a user who may create a workspace from it: its configuration, unsupported parts, and missing ones.
import { AppError } from "#base/errors.ts";
import { parseRepositoryAddress } from "#base/links/repository-address.ts";
import { findTemplateVersion } from "#db/templates/versions.ts";
import type { DeployKeyRow } from "#db/users/deploy-keys.ts";
import { listUserSecrets } from "#db/users/secrets.ts";
import type { Manifest } from "#schema/templates/manifest.ts";
import type { RepositoryAsked, RepositoryFound, RepositoryPlan } from "#schema/templates/repository.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { RepositoryError } from "#src/git/bounded-git.ts";
import { collectNotes } from "#src/provisioners/repository/apply-plan.ts";
import { REPOSITORY_TEMPLATES } from "#src/starter/repositories.ts";
import { canUseTemplate } from "../access.ts";
import type { DomainContext } from "../context.ts";
import { searchTemplates } from "../templates/search.ts";
import { findKeyForRepository, presentDeployKey } from "../users/deploy-keys.ts";
import { findRepositoryParameter } from "./planned.ts";
import { findRepositoryProvisioner } from "./template.ts";

/** Returns what is at the link. A repository that can't be read is a result, too; throws 400 for an invalid link. */
export const inspectRepository = async (
  ctx: DomainContext,
  caller: UserCaller,
  requested: RepositoryAsked,
): Promise<RepositoryFound> => {
  const { user_id } = caller;
  const [provisioner, result, account, key, templates] = await Promise.all([
    findRepositoryProvisioner(ctx).catch(ignoreInvalid),
    loadPlanOrProblem(ctx, user_id, requested),
    findAccount(ctx, user_id, requested.url),
    findDeployKey(ctx, user_id, requested.url),
    listTemplatesFor(ctx, caller),
  ]);
  const { plan, problem, isHidden } = result;
  return {
    ...(plan ? { plan } : {}),
    problem,
    ...(provisioner ? { provisioner } : {}),
    notes: plan ? collectNotes(plan, provisioner === "docker") : [],
    templates,
    missing_secrets: plan ? await listMissingSecrets(ctx, user_id, plan) : [],
    ...(key ? { deploy_key: presentDeployKey(ctx, key) } : {}),
    may_create_deploy_key: isHidden && !key && !account?.linked,
    ...(account ? { account } : {}),
  };
};

/** Maximum number of templates to consider, by name. */
const MAX_TEMPLATES = 100;

/** Returns the templates that the caller can use, that take a repository and require no other value, except the built-in ones. */
const listTemplatesFor = async (ctx: DomainContext, caller: UserCaller): Promise<RepositoryFound["templates"]> => {
  const builtInNames = new Set([...REPOSITORY_TEMPLATES.values()].map(({ name }) => name));
  const shown = (await searchTemplates(ctx, caller, "deprecated:false")).filter(
    ({ template }) => !builtInNames.has(template.name) && canUseTemplate(caller, template),
  );
  const found = await Promise.all(
    shown.slice(0, MAX_TEMPLATES).map(async ({ template }) => {
      const version = await ctx.store.get(findTemplateVersion({ id: template.active_version_id }));
      return version?.manifest && needsOnlyRepository(JSON.parse(version.manifest) as Manifest) ? [template] : [];
    }),
  );
  return found.flat().map(({ id, name, display_name, icon }) => ({ id, display_name: display_name || name, icon }));
};

const needsOnlyRepository = (manifest: Manifest): boolean => {
  const repositoryParameter = findRepositoryParameter(manifest);
  const others = manifest.parameters?.filter((one) => one !== repositoryParameter) ?? [];
  return repositoryParameter !== undefined && others.every((one) => one.default !== undefined);
};

const ignoreInvalid = (error: unknown): undefined => {
  if (!(error instanceof AppError) || error.kind !== "invalid") throw error;
};

const loadPlanOrProblem = async (
  { repositories }: DomainContext,
  user_id: string,
  requested: RepositoryAsked,
): Promise<{ plan?: RepositoryPlan; problem: string; isHidden: boolean }> => {
  try {
    const plan = await repositories.plan(user_id, { requested, field: "repository" });
    return { plan, problem: "", isHidden: false };
  } catch (error) {
    // An invalid link or name is the caller's mistake.
    const isReadProblem = error instanceof AppError && error.kind === "invalid" && error.cause !== undefined;
    if (!isReadProblem) throw error;
    // Hosts that are reached only over SSH have no web pages to read.
    const isSsh = !/^https?:/i.test(requested.url.trim());
    const kind = error.cause instanceof RepositoryError ? error.cause.kind : undefined;
    return { problem: error.message, isHidden: kind === "missing" || (kind === "unreachable" && isSsh) };
  }
};

const findAccount = async (
  { links }: DomainContext,
  user_id: string,
  url: string,
): Promise<RepositoryFound["account"]> => {
  const provider = links.providerFor(parseRepositoryAddress(url)?.url ?? "");
  if (!provider) return undefined;
  const linked = (await links.getLiveToken(user_id, provider).catch(() => undefined)) !== undefined;
  return { id: provider.id, display_name: provider.display_name, linked };
};

const findDeployKey = async (ctx: DomainContext, user_id: string, url: string): Promise<DeployKeyRow | undefined> => {
  const address = parseRepositoryAddress(url);
  return address && findKeyForRepository(ctx, user_id, address.url);
};

const listMissingSecrets = async (
  { store }: DomainContext,
  user_id: string,
  { secrets }: RepositoryPlan,
): Promise<string[]> => {
  if (secrets.length === 0) return [];
  const storedNames = new Set((await store.all(listUserSecrets({ user_id }))).map(({ env_name }) => env_name));
  return secrets.map(({ name }) => name).filter((name) => !storedNames.has(name));
};
