// Decides which agents of a workspace are signed in: those of the latest build. While a stop or delete build is active, the agents that it
// ends are signed in, so that their stop scripts can still report (facts/platform 2.3, 8.2; rule WK-25).
import { sql } from "drizzle-orm";
import { agents } from "../schema/agents.ts";
import { jobs } from "../schema/jobs.ts";
import { workspace_builds, workspaces } from "../schema/workspaces.ts";

/** Selects the build whose agents may be running: the newest build that is a start or has succeeded. A successful stop has no agents. */
const selectRunningBuild = (workspace_id: unknown) => sql`(select s.id from ${workspace_builds} s
  join ${jobs} t on t.id = s.job_id
  where s.workspace_id = ${workspace_id} and (s.transition = 'start'
    or (t.completed_at is not null and t.error = '' and t.canceled_at is null))
  order by s.build_number desc limit 1)`;

/** Condition for queries over `agents` joined with `workspaces`: the agent is signed in. */
export const isSignedIn = sql`(${workspaces.deleted} = 0 and (${workspaces.latest_build_id} = ${agents.build_id}
  or (${agents.build_id} = ${selectRunningBuild(workspaces.id)}
    and exists (select 1 from ${workspace_builds} b join ${jobs} j on j.id = b.job_id
      where b.id = ${workspaces.latest_build_id} and b.transition <> 'start' and j.completed_at is null))))`;

/**
 * Condition for queries over `agents`: the agent of the workspace in `workspace_id` may be running, so a stop or delete build must end it.
 */
export const mayBeRunning = sql`${agents.build_id} = ${selectRunningBuild(sql.placeholder("workspace_id"))}`;

/** Condition for queries over `agents`: the agent belongs to the newest start build before the build in `build_id`. */
export const isOfStartBefore = sql`${agents.build_id} = (select s.id from ${workspace_builds} e
  join ${workspace_builds} s on s.workspace_id = e.workspace_id and s.build_number < e.build_number and s.transition = 'start'
  where e.id = ${sql.placeholder("build_id")} order by s.build_number desc limit 1)`;
