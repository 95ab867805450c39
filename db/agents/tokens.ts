// Authenticates a workspace agent. Its token is valid as long as the agent is signed in (facts/platform 8.2).
import { and, desc, eq, isNotNull } from "drizzle-orm";
import { build, eqParam, query } from "../engine/sql.ts";
import { agents } from "../schema/agents.ts";
import { users } from "../schema/users.ts";
import { workspaces } from "../schema/workspaces.ts";
import { agentIdentity } from "./agents.ts";
import { isSignedIn } from "./signed-in.ts";

export const findAgentByToken = query(
  build
    .select({
      ...agentIdentity,
      workspace_id: agents.workspace_id,
      owner_id: workspaces.owner_id,
      api_key_scope: agents.api_key_scope,
      part: workspaces.part,
    })
    .from(agents)
    .innerJoin(workspaces, eq(workspaces.id, agents.workspace_id))
    .where(and(eqParam(agents.token_hash), isSignedIn)),
);

/** The workspace, the template and the owner of a signed-in agent. Parameters: {id}. */
export const findSignedInAgent = query(
  build
    .select({
      workspace_id: agents.workspace_id,
      owner_id: workspaces.owner_id,
      template_id: workspaces.template_id,
      organization_id: workspaces.organization_id,
      api_key_scope: agents.api_key_scope,
      owner_status: users.status,
    })
    .from(agents)
    .innerJoin(workspaces, eq(workspaces.id, agents.workspace_id))
    .innerJoin(users, eq(users.id, workspaces.owner_id))
    .where(and(eqParam(agents.id), eq(users.deleted, false), isSignedIn)),
);

/** Digests of the tokens of a workspace's newest agents. Parameters: {workspace_id}. */
export const listTokenHashes = query(
  build
    .select({ id: agents.id, token_hash: agents.token_hash })
    .from(agents)
    .where(and(eqParam(agents.workspace_id), isNotNull(agents.token_hash)))
    .orderBy(desc(agents.key))
    .limit(50),
);
