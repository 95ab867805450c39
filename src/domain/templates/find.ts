// Finds the template in a path and checks the caller's access.
import { Type as t } from "@sinclair/typebox";
import { forbidden, notFound } from "#base/errors.ts";
import { findTemplateByName, findTemplateShown, type TemplateView } from "#db/templates/templates.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { canManageTemplate, canReadTemplate } from "../access.ts";
import type { DomainContext } from "../context.ts";
import { loadOrganization } from "../organizations/find.ts";

export const templatePath = t.Object({
  template: t.String({ format: "uuid", description: "The ID of the template." }),
});

/** Returns the template if the caller can see it. Rejects with 404 otherwise. */
export const loadTemplate = async (ctx: DomainContext, id: string, caller: UserCaller): Promise<TemplateView> => {
  const found = await ctx.store.get(findTemplateShown({ id: id.toLowerCase() }));
  if (!found || !canReadTemplate(caller, found.template)) throw notFound();
  return found;
};

/** Finds a template by the names of its organization and itself. */
export const findTemplateNamed = async (
  ctx: DomainContext,
  { organization, name }: { readonly organization: string; readonly name: string },
  caller: UserCaller,
): Promise<TemplateView> => {
  const { id: organization_id } = await loadOrganization(ctx.store, organization, caller);
  const found = await ctx.store.get(findTemplateByName({ organization_id, name }));
  if (!found) throw notFound();
  return loadTemplate(ctx, found.id, caller);
};

/** Like `loadTemplate`, for callers who can change it. Rejects with 403 for callers who can only see it. */
export const loadManagedTemplate = async (
  ctx: DomainContext,
  id: string,
  caller: UserCaller,
): Promise<TemplateView> => {
  const found = await loadTemplate(ctx, id, caller);
  if (!canManageTemplate(caller, found.template)) {
    throw forbidden("Only template administrators can change templates.");
  }
  return found;
};
