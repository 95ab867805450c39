// Finds the template version in a path and checks the caller's access.
import { Type as t } from "@sinclair/typebox";
import { AppError, forbidden, notFound } from "#base/errors.ts";
import { findTemplateVersion, findVersionShown, type VersionView } from "#db/templates/versions.ts";
import type { Manifest } from "#schema/templates/manifest.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { isActive } from "#schema/workspaces/job.ts";
import { canManageTemplate, canManageTemplates, canReadTemplate, canReadTemplates } from "../access.ts";
import type { DomainContext } from "../context.ts";

export const versionPath = t.Object({
  templateversion: t.String({ format: "uuid", description: "The ID of the template version." }),
});

/** Returns the version if the caller can see it. Rejects with 404 otherwise. */
export const loadVisibleVersion = async (ctx: DomainContext, id: string, caller: UserCaller): Promise<VersionView> => {
  const found = await ctx.store.get(findVersionShown({ id: id.toLowerCase() }));
  if (!found || !canRead(caller, found)) throw notFound();
  return found;
};

const canRead = (caller: UserCaller, { version, template }: VersionView): boolean =>
  template ? canReadTemplate(caller, template) : canReadTemplates(caller, version.organization_id);

/** Returns whether the caller can change the version. A version without a template requires an administrator of all templates. */
export const canManageVersion = (caller: UserCaller, { version, template }: VersionView): boolean =>
  template ? canManageTemplate(caller, template) : canManageTemplates(caller, version.organization_id);

/** Like `loadVisibleVersion`, for callers who can change it. Rejects with 403 for callers who can only see it. */
export const loadManagedVersion = async (ctx: DomainContext, id: string, caller: UserCaller): Promise<VersionView> => {
  const found = await loadVisibleVersion(ctx, id, caller);
  if (!canManageVersion(caller, found)) {
    throw forbidden("Only template administrators can change template versions.");
  }
  return found;
};

/** Returns the parsed template.yaml. Rejects with 412 while it is being imported and with 400 when the import failed. */
export const loadManifest = async (ctx: DomainContext, { version, job }: VersionView): Promise<Manifest> => {
  const row = await ctx.store.get(findTemplateVersion({ id: version.id }));
  if (row?.manifest) return JSON.parse(row.manifest) as Manifest;
  if (isActive(job)) throw new AppError("precondition_failed", "The template version is still being imported.");
  throw new AppError("invalid", "The import of the template version has failed.", { detail: job.error.slice(0, 500) });
};
