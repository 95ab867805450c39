// Daily active users of a template's workspaces (facts/platform 6.2).
import { t } from "elysia";
import { forbidden } from "#base/errors.ts";
import { canManageTemplate, canReadAudit } from "#domain/access.ts";
import { loadDaus, parseDayOffset } from "#domain/insights/daus.ts";
import { loadTemplate, templatePath } from "#domain/templates/find.ts";
import { DailyUsers } from "#schema/insights.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { tzOffset } from "../insights/query.ts";

export const templateDaus = (ctx: ApiContext) =>
  routes({ prefix: "/templates" })
    .use(callers)
    .get(
      "/:template/daus",
      async ({ caller, params, query }) => {
        const hours = parseDayOffset(query.tz_offset, caller);
        const { template } = await loadTemplate(ctx, params.template, caller);
        const { organization_id, id } = template;
        if (!canManageTemplate(caller, template) && !canReadAudit(caller, organization_id)) {
          throw forbidden("Only template administrators and auditors can see how templates are used.");
        }
        return loadDaus(ctx, { hours, templates: [id] });
      },
      {
        user: true,
        params: templatePath,
        query: t.Object({
          tz_offset: tzOffset,
        }),
        response: {
          200: DailyUsers,
          ...fails(400, 401, 403, 404, 503),
        },
        detail: operation({
          tags: ["Templates"],
          operationId: "getTemplateDailyUsers",
          summary: "Get a template's daily active users",
          description: "Returns one entry per day, from 60 days ago to today.",
          access: "organization_admins",
          scope: "template:view_insights",
        }),
      },
    );
