// The parameter values that a user last entered for a template: those of their newest build of it.
import { asc, eq, sql } from "drizzle-orm";
import { build, query } from "../engine/sql.ts";
import { workspace_build_parameters } from "../schema/workspaces.ts";

/** By name: {owner_id, template_id}. Includes deleted workspaces. */
export const listLastParameters = query(
  build
    .select({ name: workspace_build_parameters.name, value: workspace_build_parameters.value })
    .from(workspace_build_parameters)
    .where(
      eq(
        workspace_build_parameters.build_id,
        sql`(select b.id from workspace_builds b join workspaces w on w.id = b.workspace_id
          where w.owner_id = ${sql.placeholder("owner_id")} and w.template_id = ${sql.placeholder("template_id")}
          and b.initiator_id = w.owner_id and b.transition = 'start' order by b.created_at desc, b.id desc limit 1)`,
      ),
    )
    .orderBy(asc(workspace_build_parameters.name)),
);
