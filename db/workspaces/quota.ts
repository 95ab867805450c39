// What someone's workspaces in an organization cost a day, and the guard that keeps a build from going beyond what their groups allow.
import { and, eq, sql } from "drizzle-orm";
import { build, given, query, statement } from "../engine/sql.ts";
import { group_members, groups } from "../schema/groups.ts";
import { workspace_builds, workspaces } from "../schema/workspaces.ts";

/** The daily cost of the latest builds of someone's workspaces: {organization_id, owner_id}. */
export const sumDailyCost = query(
  build
    .select({ consumed: sql<number>`coalesce(sum(${workspace_builds.daily_cost}), 0)` })
    .from(workspaces)
    .innerJoin(workspace_builds, eq(workspace_builds.id, workspaces.latest_build_id))
    .where(and(given(workspaces.owner_id), given(workspaces.organization_id), eq(workspaces.deleted, false))),
);

const others = sql`(select coalesce(sum(b.daily_cost), 0) from ${workspaces} w join ${workspace_builds} b on b.id = w.latest_build_id
  where w.owner_id = ${workspaces.owner_id} and w.organization_id = ${workspaces.organization_id} and w.deleted = 0
  and w.id <> ${workspaces.id})`;

const allowed = sql`(select coalesce(sum(g.quota_allowance), 0) from ${groups} g where g.organization_id = ${workspaces.organization_id}
  and (g.id = ${workspaces.organization_id} or g.id in (select m.group_id from ${group_members} m
    where m.user_id = ${workspaces.owner_id})))`;

/** Changes nothing; refuses the batch as stale when this cost, with that of the owner's other workspaces, is above what is allowed. */
export const guardQuota = statement<{ workspace_id: string; daily_cost: number }>(
  build
    .update(workspaces)
    .set({ deleted: false })
    .where(
      and(
        eq(workspaces.id, sql.placeholder("workspace_id")),
        eq(workspaces.deleted, false),
        sql`${others} + ${sql.placeholder("daily_cost")} <= ${allowed}`,
      ),
    ),
  { expect: 1, alone: "quota" },
);
