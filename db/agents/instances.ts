// Finds agents by their cloud instance: signed-in agents without a parent (facts/platform 8.3).
import { and, asc, eq, isNull, ne, sql } from "drizzle-orm";
import { build, eqParam, query } from "../engine/sql.ts";
import { agents } from "../schema/agents.ts";
import { workspaces } from "../schema/workspaces.ts";
import { isSignedIn } from "./signed-in.ts";

/** The agents of this instance by name. */
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
        isSignedIn,
      ),
    )
    .orderBy(asc(agents.name), asc(agents.key))
    .limit(50),
);
