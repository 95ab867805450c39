// Finds agents by their cloud instance: signed-in agents without a parent (facts/platform 8.3), of the workspace that had the instance
// first. A template names any instance it likes, so without this it could get the machine of another workspace to sign in as its own.
import { and, asc, eq, isNull, ne, sql } from "drizzle-orm";
import { build, eqParam, query } from "../engine/sql.ts";
import { agents } from "../schema/agents.ts";
import { workspaces } from "../schema/workspaces.ts";
import { isSignedIn } from "./signed-in.ts";

/** The workspace, of those that are not deleted, whose agents named the instance first, in whichever build: {instance_id}. */
const firstWorkspace = sql`(select a.workspace_id from agents a join workspaces w on w.id = a.workspace_id
  where a.instance_id = ${sql.placeholder("instance_id")} and a.instance_id <> '' and a.parent_id is null and w.deleted = 0
  order by a.created_at, a.key limit 1)`;

/** The agents of this instance by name: {instance_id}. */
export const listAgentsOfInstance = query(
  build
    .select({ agent_id: agents.id, name: agents.name })
    .from(agents)
    .innerJoin(workspaces, eq(workspaces.id, agents.workspace_id))
    .where(
      and(
        eqParam(agents.instance_id),
        // Required for SQLite to use the partial index.
        ne(agents.instance_id, sql`''`),
        isNull(agents.parent_id),
        sql`${agents.workspace_id} = ${firstWorkspace}`,
        isSignedIn,
      ),
    )
    .orderBy(asc(agents.name), asc(agents.key))
    .limit(50),
);
