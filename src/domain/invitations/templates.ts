// Whether members of an organization can create a workspace at all: the inviter is warned if they cannot.
import { listTemplatesByOrganization } from "#db/templates/templates.ts";
import { LOCAL_PROVISIONER, mayHaveLocal, whyNoLocal } from "../builds/local-rule.ts";
import type { DomainContext } from "../context.ts";
import { getGroupAcl } from "../templates/access-list.ts";

/** Returns whether at least one template is shared with all members and can be started by them. */
export const hasTemplateForMembers = async (
  { store, config }: Pick<DomainContext, "store" | "config">,
  organization_id: string,
): Promise<boolean> => {
  const membersHaveLocal = whyNoLocal(config) === undefined && mayHaveLocal(config, []);
  const rows = await store.scan(listTemplatesByOrganization({ organization_id }));
  return rows.some(
    (template) =>
      template.deprecation_message === "" &&
      getGroupAcl(template)[organization_id] !== undefined &&
      (template.provisioner !== LOCAL_PROVISIONER || membersHaveLocal),
  );
};
