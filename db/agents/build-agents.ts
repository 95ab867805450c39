// Deletes the agents that an earlier attempt at a build has created. Used by the workspace actor when it begins the build again.
import { inArray, sql } from "drizzle-orm";
import { build, eqParam, type Statement, statement } from "../engine/sql.ts";
import { agent_apps, agent_log_sources, agent_metadata, agent_scripts, agents } from "../schema/agents.ts";
import { deleteAppStatusesOfBuild } from "./app-statuses.ts";

const agentIdsOfBuild = build.select({ id: agents.id }).from(agents).where(eqParam(agents.build_id));

type BuildParams = { build_id: string };
const deletions = [agent_apps, agent_log_sources, agent_metadata, agent_scripts]
  .map((table) => statement<BuildParams>(build.delete(table).where(inArray(table.agent_id, agentIdsOfBuild))))
  .concat(statement<BuildParams>(build.delete(agents).where(eqParam(agents.build_id))));

/** Deletes the agents of a build and all their rows. */
export const deleteAgentsOfBuild = (build_id: string): Statement[] => [
  deleteAppStatusesOfBuild(build_id),
  ...deletions.map((one) => one({ build_id })),
];

const release = statement<{ token_hash: string }>(
  build.update(agents).set({ token_hash: null }).where(eqParam(agents.token_hash)),
);

/** Removes the token from any agent that has it. */
export const releaseToken = (token_hash: string): Statement => release({ token_hash });

/** Deletes an app of an earlier build of the workspace, so that its ID can be used again. */
export const releaseApp = statement<{ id: string; workspace_id: string }>(
  build
    .delete(agent_apps)
    .where(
      sql`${agent_apps.id} = ${sql.placeholder("id")} and ${agent_apps.agent_id} in (select a.id from agents a where a.workspace_id = ${sql.placeholder("workspace_id")})`,
    ),
);
