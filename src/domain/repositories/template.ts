// The built-in template for opening repositories without naming a template; created when it is first needed.
import { AppError } from "#base/errors.ts";
import { findSetting } from "#db/settings.ts";
import { findTemplateByName, type TemplateRow } from "#db/templates/templates.ts";
import { listOrganizations, type OrganizationRow } from "#db/users/organizations.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { REPOSITORY_TEMPLATES } from "#src/starter/repositories.ts";
import { explainNoLocal } from "../builds/local-rule.ts";
import type { DomainContext } from "../context.ts";
import { createBuiltInTemplate, toCreatedKey } from "../templates/starter.ts";

/** Serializes creation, by name and organization. */
const creations = new WeakMap<DomainContext["store"], Map<string, Promise<void>>>();

/**
 * Returns how a repository would be opened here: with a Docker Engine if one responds, otherwise as a process. Throws 400 when neither is
 * possible.
 */
export const findRepositoryProvisioner = async ({
  provisioners,
  config,
}: DomainContext): Promise<"docker" | "local"> => {
  const docker = provisioners.get("docker");
  const dockerProblem = docker ? await docker.findProblem?.() : "This server has no Docker provisioner.";
  if (dockerProblem === undefined) return "docker";
  const refusal = explainNoLocal(config);
  if (refusal === undefined) return "local";
  throw new AppError("invalid", "This server can't open repositories.", {
    detail: `${dockerProblem} ${refusal}`,
  });
};

/** Returns the organization in which a user opens repositories: the default one if they are a member, otherwise their first one. */
export const findRepositoryOrganization = async (
  { store }: DomainContext,
  { organizations }: Pick<UserCaller, "organizations">,
): Promise<OrganizationRow> => {
  const memberOrganizations = (await store.all(listOrganizations())).filter(({ id }) => id in organizations);
  const found = memberOrganizations.find(({ is_default }) => is_default) ?? memberOrganizations[0];
  if (!found)
    throw new AppError(
      "invalid",
      "The owner of the workspace is not a member of any organization. Add them to one first.",
    );
  return found;
};

/** Returns this organization's template, created if it never existed. Throws 400 if an administrator deleted it. */
export const ensureRepositoryTemplate = async (
  ctx: DomainContext,
  organization: OrganizationRow,
): Promise<TemplateRow> => {
  const provisioner = await findRepositoryProvisioner(ctx);
  const example = REPOSITORY_TEMPLATES.get(provisioner);
  if (!example) throw new Error(`no template opens repositories with ${provisioner}`);
  const found = await findByName(ctx, organization, example.name);
  if (found) return found;
  if (await ctx.store.get(findSetting({ key: toCreatedKey(example.name, organization) }))) {
    throw new AppError(
      "invalid",
      `The template ${example.name} was deleted. Choose another one that takes a repository.`,
    );
  }
  const running = creations.get(ctx.store) ?? new Map<string, Promise<void>>();
  creations.set(ctx.store, running);
  const key = toCreatedKey(example.name, organization);
  const work =
    running.get(key) ??
    createBuiltInTemplate(ctx, example.name, example, organization).finally(() => running.delete(key));
  running.set(key, work);
  await work.catch(async (error) => {
    // Another node may have created it at the same time.
    if (!(await findByName(ctx, organization, example.name))) throw error;
  });
  const created = await findByName(ctx, organization, example.name);
  if (!created) throw new Error(`the template ${example.name} could not be created`);
  return created;
};

const findByName = (
  { store }: DomainContext,
  { id }: OrganizationRow,
  name: string,
): Promise<TemplateRow | undefined> => store.get(findTemplateByName({ organization_id: id, name }));
