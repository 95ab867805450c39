// Finding the template version that a path names, for a caller who may see or change it.
import { Type as t } from "@sinclair/typebox";
import { AppError, forbidden, notFound } from "#base/errors.ts";
import { findTemplateVersion, findVersionShown, type ShownVersion } from "#db/templates/versions.ts";
import type { Manifest } from "#schema/templates/manifest.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { isActive } from "#schema/workspaces/job.ts";
import { mayManageTemplate, mayManageTemplates, mayReadTemplate, mayReadTemplates } from "../access.ts";
import type { DomainContext } from "../context.ts";

export const versionPath = t.Object({
  templateversion: t.String({ format: "uuid", description: "Template version id." }),
});

/** The version, when the caller may see it; 404 otherwise. */
export const versionAt = async (ctx: DomainContext, id: string, caller: UserCaller): Promise<ShownVersion> => {
  const found = await ctx.store.get(findVersionShown({ id: id.toLowerCase() }));
  if (!found || !mayRead(caller, found)) throw notFound();
  return found;
};

const mayRead = (caller: UserCaller, { version, template }: ShownVersion): boolean =>
  template ? mayReadTemplate(caller, template) : mayReadTemplates(caller, version.organization_id);

/** Changing it: that of its template; one without a template by those who look after all. */
export const mayManageVersion = (caller: UserCaller, { version, template }: ShownVersion): boolean =>
  template ? mayManageTemplate(caller, template) : mayManageTemplates(caller, version.organization_id);

/** The same for those who may change it; 403 for those who may only see it. */
export const managedVersionAt = async (ctx: DomainContext, id: string, caller: UserCaller): Promise<ShownVersion> => {
  const found = await versionAt(ctx, id, caller);
  if (!mayManageVersion(caller, found)) {
    throw forbidden("Only template administrators can change template versions.");
  }
  return found;
};

/** The parsed template.yaml. 412 while it is being imported, 400 when the import gave none. */
export const loadManifest = async (ctx: DomainContext, { version, job }: ShownVersion): Promise<Manifest> => {
  const row = await ctx.store.get(findTemplateVersion({ id: version.id }));
  if (row?.manifest) return JSON.parse(row.manifest) as Manifest;
  if (isActive(job)) throw new AppError("precondition_failed", "The template version is still being imported.");
  throw new AppError("invalid", "The import of the template version has failed.", { detail: job.error.slice(0, 500) });
};
