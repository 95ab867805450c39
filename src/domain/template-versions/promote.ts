// Decides who may promote a version. Workspaces follow the active version, so a version that their owners could not start must not become
// active (rule LP-16).
import { findTemplateVersion } from "#db/templates/versions.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { checkLocalStart, LOCAL_PROVISIONER } from "../builds/local-rule.ts";
import type { DomainContext } from "../context.ts";

/**
 * Rejects with 403 when the version runs on the server's machine and its starts would be rejected because of the settings, its author or
 * the caller.
 */
export const requirePromotable = async (
  { store, config }: Pick<DomainContext, "store" | "config">,
  { user_id }: UserCaller,
  id: string,
): Promise<void> => {
  const version = await store.get(findTemplateVersion({ id }));
  const { provisioner } = JSON.parse(version?.manifest || "{}") as { provisioner?: string };
  if (!version || provisioner !== LOCAL_PROVISIONER) return;
  await checkLocalStart({ store, config }, { owner_id: user_id, initiator_id: user_id, author_id: version.created_by });
};
