// Lists of templates and their search `q` (facts/platform 9.3).
import { SearchQuery } from "#base/query.ts";
import { listTemplates, type TemplateRow, type TemplateView } from "#db/templates/templates.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { canManageTemplate, canReadTemplate } from "../access.ts";
import { canHaveLocal, LOCAL_PROVISIONER } from "../builds/local-rule.ts";
import type { DomainContext } from "../context.ts";

/**
 * Returns the templates that the caller can use, sorted by name. Templates of local workspaces are returned only to users who can have a
 * local workspace and to template administrators. Rejects an invalid `q` with 400.
 */
export const searchTemplates = async (
  ctx: DomainContext,
  caller: UserCaller,
  q: string,
  organization_id?: string,
): Promise<TemplateView[]> => {
  const matches = makeMatcher(q, caller);
  const canSeeLocal = (template: TemplateRow): boolean =>
    canHaveLocal(ctx.config, caller.roles) || canManageTemplate(caller, template);
  const rows = await ctx.store.scan(listTemplates());
  return rows.filter(
    (row) =>
      (organization_id === undefined || row.template.organization_id === organization_id) &&
      canReadTemplate(caller, row.template) &&
      (row.template.provisioner !== LOCAL_PROVISIONER || canSeeLocal(row.template)) &&
      matches(row),
  );
};

const makeMatcher = (q: string, caller: UserCaller): ((row: TemplateView) => boolean) => {
  const query = new SearchQuery(q);
  const name = query.text("name");
  const exactName = query.text("exact_name");
  const deprecated = query.flag("deprecated");
  const organization = query.text("organization");
  const hasTasks = query.flag("has-ai-task");
  const author = query.text("author");
  const { free } = query;
  query.requireValid("Query parameters have invalid values.");
  return ({ template, organization: organizationRow, creator, has_ai_task }) => {
    const names = [template.name, template.display_name].map((one) => one.toLowerCase());
    const includesText = (part: string): boolean => names.some((one) => one.includes(part));
    if (free !== "" && !includesText(free)) return false;
    if (name !== undefined && !includesText(name)) return false;
    if (exactName !== undefined && template.name.toLowerCase() !== exactName) return false;
    if (deprecated !== undefined && (template.deprecation_message !== "") !== deprecated) return false;
    if (hasTasks !== undefined && (has_ai_task === 1) !== hasTasks) return false;
    if (
      organization !== undefined &&
      ![template.organization_id, organizationRow.name.toLowerCase()].includes(organization)
    ) {
      return false;
    }
    if (author === undefined) return true;
    return author === "me" ? template.created_by === caller.user_id : creator.username.toLowerCase() === author;
  };
};
