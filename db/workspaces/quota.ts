// The daily cost of a user's workspaces in an organization, and the guard that keeps a build within their groups' allowances.
import { and, eq, sql } from "drizzle-orm";
import { build, eqParam, query, statement } from "../engine/sql.ts";
import { group_members, groups } from "../schema/groups.ts";
import { workspace_builds, workspaces } from "../schema/workspaces.ts";

/** The daily cost of the latest builds of a user's workspaces. Parameters: {organization_id, owner_id}. */
export const sumDailyCost = query(
  build
    .select({ consumed: sql<number>`coalesce(sum(${workspace_builds.daily_cost}), 0)` })
    .from(workspaces)
    .innerJoin(workspace_builds, eq(workspace_builds.id, workspaces.latest_build_id))
    .where(and(eqParam(workspaces.owner_id), eqParam(workspaces.organization_id), eq(workspaces.deleted, false))),
);

const otherCost = sql`(select coalesce(sum(b.daily_cost), 0) from ${workspaces} w join ${workspace_builds} b on b.id = w.latest_build_id
  where w.owner_id = ${workspaces.owner_id} and w.organization_id = ${workspaces.organization_id} and w.deleted = 0
  and w.id <> ${workspaces.id})`;

const allowance = sql`(select coalesce(sum(g.quota_allowance), 0) from ${groups} g where g.organization_id = ${workspaces.organization_id}
  and (g.id = ${workspaces.organization_id} or g.id in (select m.group_id from ${group_members} m
    where m.user_id = ${workspaces.owner_id})))`;

/** A guard: rejects the batch as stale when this cost, together with that of the owner's other workspaces, exceeds the allowance. */
export const guardQuota = statement<{ workspace_id: string; daily_cost: number }>(
  build
    .update(workspaces)
    .set({ deleted: false })
    .where(
      and(
        eq(workspaces.id, sql.placeholder("workspace_id")),
        eq(workspaces.deleted, false),
        sql`${otherCost} + ${sql.placeholder("daily_cost")} <= ${allowance}`,
      ),
    ),
  { expect: 1, alone: "quota" },
);
