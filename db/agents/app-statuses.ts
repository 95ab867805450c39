// Statuses that apps report, newest first. Written by the agent actor.
import { and, desc, eq, sql } from "drizzle-orm";
import { build, eqParam, insertInto, query, type Statement, statement } from "../engine/sql.ts";
import { agent_apps, agents } from "../schema/agents.ts";
import { app_statuses } from "../schema/app-statuses.ts";

export type AppStatusRow = typeof app_statuses.$inferSelect;

/** Maximum statuses kept per app, so that an app with many reports does not make its workspace too large to display. */
export const MAX_STATUSES = 50;

/** The statuses of several agents, newest first; `agent_ids` is a JSON array. */
export const listAppStatusesByAgents = query(
  build
    .select()
    .from(app_statuses)
    .where(sql`${app_statuses.agent_id} in (select value from json_each(${sql.placeholder("agent_ids")}))`)
    .orderBy(desc(app_statuses.key)),
);

/** The newest status of an agent's app. Parameters: {agent_id, slug}. */
export const findNewestAppState = query(
  build
    .select({ state: app_statuses.state })
    .from(app_statuses)
    .innerJoin(agent_apps, eq(agent_apps.id, app_statuses.app_id))
    .where(and(eqParam(app_statuses.agent_id), eqParam(agent_apps.slug)))
    .orderBy(desc(app_statuses.key))
    .limit(1),
);

const insert = insertInto(app_statuses);

const prune = statement<{ app_id: string }>(
  build
    .delete(app_statuses)
    .where(
      sql`${app_statuses.app_id} = ${sql.placeholder("app_id")} and ${app_statuses.key} <= (select ${sql.raw(
        '"older"."key"',
      )} from ${app_statuses} ${sql.raw('"older"')} where ${sql.raw('"older"."app_id"')} = ${sql.placeholder(
        "app_id",
      )} order by ${sql.raw('"older"."key"')} desc limit 1 offset ${sql.raw(String(MAX_STATUSES))})`,
    ),
);

/** Adds a status, and keeps only the newest `MAX_STATUSES` of its app. */
export const insertAppStatus = (row: Omit<AppStatusRow, "key">): Statement[] => [
  insert(row),
  prune({ app_id: row.app_id }),
];

const deleteOfBuild = statement<{ build_id: string }>(
  build
    .delete(app_statuses)
    .where(
      sql`${app_statuses.agent_id} in ${build.select({ id: agents.id }).from(agents).where(eqParam(agents.build_id))}`,
    ),
);

/** Deletes all statuses of this build's agents. Must run before the agents are deleted. */
export const deleteAppStatusesOfBuild = (build_id: string): Statement => deleteOfBuild({ build_id });
