// Apps of agents. Inserted by the build; only their health changes later.
import { asc, sql } from "drizzle-orm";
import { build, eqParam, insertInto, query, updateBy } from "../engine/sql.ts";
import { agent_apps } from "../schema/agents.ts";

export type AgentAppRow = typeof agent_apps.$inferSelect;

/** The apps of one agent in display order. */
export const listAgentApps = query(
  build
    .select()
    .from(agent_apps)
    .where(eqParam(agent_apps.agent_id))
    .orderBy(asc(agent_apps.display_order), asc(agent_apps.slug)),
);

/** The apps of several agents; `agent_ids` is a JSON array. */
export const listAppsByAgents = query(
  build
    .select()
    .from(agent_apps)
    .where(sql`${agent_apps.agent_id} in (select value from json_each(${sql.placeholder("agent_ids")}))`)
    .orderBy(asc(agent_apps.display_order), asc(agent_apps.slug)),
);

export const insertAgentApp = insertInto(agent_apps);
export const updateAgentApp = updateBy(agent_apps, agent_apps.id);
