// The template that a repository is opened with when a caller names none: it comes with the server, and is made when it is first needed.
import { AppError } from "#base/errors.ts";
import { findSetting } from "#db/settings.ts";
import { findTemplateByName, type TemplateRow } from "#db/templates/templates.ts";
import { findDefaultOrganization } from "#db/users/organizations.ts";
import { REPOSITORY_TEMPLATES } from "#src/starter/repositories.ts";
import { whyNoLocal } from "../builds/local-rule.ts";
import type { DomainContext } from "../context.ts";
import { madeKey, makeReady } from "../templates/starter.ts";

type Known = { readonly id: string; readonly name: string };

/** One is made at a time, by name. */
const making = new WeakMap<DomainContext["store"], Map<string, Promise<void>>>();

/** How a repository would be opened here: with the Docker Engine where one answers, else as a process. 400 when neither is possible. */
export const repositoryProvisioner = async ({ provisioners, config }: DomainContext): Promise<"docker" | "local"> => {
  const docker = provisioners.get("docker");
  const lacking = docker ? await docker.lacks?.() : "There is no provisioner docker.";
  if (lacking === undefined) return "docker";
  const refusal = whyNoLocal(config);
  if (refusal === undefined) return "local";
  throw new AppError("invalid", "This server can't open repositories.", {
    detail: `${lacking} ${refusal}`,
  });
};

/** The template, made if it was never made. 400 when an administrator has deleted it. */
export const repositoryTemplate = async (ctx: DomainContext): Promise<Known> => {
  const provisioner = await repositoryProvisioner(ctx);
  const example = REPOSITORY_TEMPLATES.get(provisioner);
  if (!example) throw new Error(`no template opens repositories with ${provisioner}`);
  const found = await named(ctx, example.name);
  if (found) return found;
  if (await ctx.store.get(findSetting({ key: madeKey(example.name) }))) {
    throw new AppError(
      "invalid",
      `The template ${example.name} was deleted. Choose another one that takes a repository.`,
    );
  }
  const running = making.get(ctx.store) ?? new Map<string, Promise<void>>();
  making.set(ctx.store, running);
  const work =
    running.get(example.name) ?? makeReady(ctx, example.name, example).finally(() => running.delete(example.name));
  running.set(example.name, work);
  await work.catch(async (error) => {
    // Another node may have made it at the same time.
    if (!(await named(ctx, example.name))) throw error;
  });
  const made = await named(ctx, example.name);
  if (!made) throw new Error(`the template ${example.name} was not made`);
  return made;
};

const named = async ({ store }: DomainContext, name: string): Promise<TemplateRow | undefined> => {
  const organization = await store.get(findDefaultOrganization());
  return organization && (await store.get(findTemplateByName({ organization_id: organization.id, name })));
};
