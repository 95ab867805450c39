// Organizations: who owns templates and workspaces together.
import { Elysia, t } from "elysia";
import { listOrganizations } from "#db/organizations.ts";
import { Organization } from "#schema/organization.ts";
import { maySeeOrganization } from "../access.ts";
import { callers } from "../caller.ts";
import type { ApiContext } from "../context.ts";
import { fails } from "../responses.ts";
import { organizationAt, showOrganization } from "./organization.ts";

const tags = ["Organizations"];
const path = t.Object({ organization: t.String({ description: "Organization id, name, or the word `default`." }) });

export const organizations = (ctx: ApiContext) =>
  new Elysia({ prefix: "/organizations" })
    .use(callers)
    .get(
      "",
      async ({ caller }) => {
        const rows = await ctx.store.all(listOrganizations());
        return rows.filter((row) => maySeeOrganization(caller, row.id)).map(showOrganization);
      },
      {
        user: true,
        response: { 200: t.Array(Organization), ...fails(401) },
        detail: { tags, summary: "List organizations", description: "Those the caller may see, by name." },
      },
    )
    .get(
      "/:organization",
      async ({ caller, params }) => showOrganization(await organizationAt(ctx.store, params.organization, caller)),
      {
        user: true,
        params: path,
        response: { 200: Organization, ...fails(401, 404) },
        detail: { tags, summary: "Get an organization" },
      },
    );
