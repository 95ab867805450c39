// Writes of the connection log: the beginning and end of a connection, and the end of connections whose end was never reported. search.ts
// reads it.
import { and, eq, inArray, isNotNull, isNull, lt, notExists, sql } from "drizzle-orm";
import { build, eqParam, query, statement } from "../engine/sql.ts";
import { agents } from "../schema/agents.ts";
import { connection_logs } from "../schema/connections.ts";
import { workspaces } from "../schema/workspaces.ts";

export type ConnectionRow = typeof connection_logs.$inferSelect;

/** The columns that are known when a connection begins. */
export type NewConnectionRow = Omit<ConnectionRow, "key" | "disconnect_time" | "disconnect_reason">;

const param = sql.placeholder;

/** Records the beginning of a connection. Leaves an existing entry unchanged. */
export const insertConnection = statement<NewConnectionRow>(
  build
    .insert(connection_logs)
    .values({
      id: param("id"),
      connect_time: param("connect_time"),
      type: param("type"),
      organization_id: param("organization_id"),
      workspace_id: param("workspace_id"),
      workspace_name: param("workspace_name"),
      owner_id: param("owner_id"),
      agent_id: param("agent_id"),
      agent_name: param("agent_name"),
      connection_id: param("connection_id"),
      status_code: param("status_code"),
      user_id: param("user_id"),
      ip: param("ip"),
      user_agent: param("user_agent"),
      target: param("target"),
    } as never)
    .onConflictDoNothing(),
);

type ConnectionEnd = { readonly disconnect_time: number; readonly disconnect_reason: string };

const endColumns = {
  // Clocks differ, but a connection must not end before it began.
  disconnect_time: sql`max(${param("disconnect_time")}, ${connection_logs.connect_time})`,
  disconnect_reason: sql`${param("disconnect_reason")}`,
};
const isOpen = isNull(connection_logs.disconnect_time);

/** Ends a connection, unless it has already ended. */
export const endConnection = statement<ConnectionEnd & { id: string }>(
  build
    .update(connection_logs)
    .set(endColumns)
    .where(and(eqParam(connection_logs.id), isOpen)),
);

/** Ends a connection by the agent's ID for it, unless it has already ended. */
export const endReportedConnection = statement<
  ConnectionEnd & { agent_id: string; connection_id: string; status_code: number }
>(
  build
    .update(connection_logs)
    .set({ ...endColumns, status_code: sql`${param("status_code")}` })
    .where(and(eqParam(connection_logs.agent_id), eqParam(connection_logs.connection_id), isOpen)),
);

/** Ends every open connection that a server recorded itself, after that server has stopped. Connections reported by agents stay open. */
export const endServerConnections = statement<ConnectionEnd>(
  build
    .update(connection_logs)
    .set(endColumns)
    .where(and(isOpen, isNull(connection_logs.connection_id))),
);

/** Like `endServerConnections`, for workspaces with this `part`. `but`: a JSON array of the IDs of connections that stay open. */
export const endServerConnectionsOfPart = statement<ConnectionEnd & { part: number; but: string }>(
  build
    .update(connection_logs)
    .set(endColumns)
    .where(
      and(
        isOpen,
        isNull(connection_logs.connection_id),
        sql`${connection_logs.workspace_id} in (select w.id from workspaces w where w.part = ${param("part")})`,
        sql`${connection_logs.id} not in (select value from json_each(${param("but")}))`,
      ),
    ),
);

/** Ends the connections with these IDs, a JSON array. */
export const endConnectionsAmong = statement<ConnectionEnd & { ids: string }>(
  build
    .update(connection_logs)
    .set(endColumns)
    .where(and(isOpen, sql`${connection_logs.id} in (select value from json_each(${param("ids")}))`)),
);

/** Ends connections that this agent reported before its restart. */
export const endConnectionsBefore = statement<ConnectionEnd & { agent_id: string; before: number }>(
  build
    .update(connection_logs)
    .set(endColumns)
    .where(
      and(
        eqParam(connection_logs.agent_id),
        isNotNull(connection_logs.connection_id),
        lt(connection_logs.connect_time, param("before")),
        isOpen,
      ),
    ),
);

/** Matches open connections to an agent whose build is not the latest of an existing workspace. */
const isOrphaned = and(
  isOpen,
  notExists(
    build
      .select({ one: sql`1`.as("one") })
      .from(agents)
      .innerJoin(
        workspaces,
        and(eq(workspaces.id, agents.workspace_id), eq(workspaces.latest_build_id, agents.build_id)),
      )
      .where(and(eq(agents.id, connection_logs.agent_id), eq(workspaces.deleted, false))),
  ),
);
export const findOrphanedConnection = query(
  build.select({ key: connection_logs.key }).from(connection_logs).where(isOrphaned).limit(1),
);
export const endOrphanedConnections = statement<ConnectionEnd>(
  build.update(connection_logs).set(endColumns).where(isOrphaned),
);

const isOld = lt(connection_logs.connect_time, param("before"));

/** An entry past its retention period. Parameters: {before}. */
export const findOldConnection = query(
  build.select({ key: connection_logs.key }).from(connection_logs).where(isOld).limit(1),
);

/** Deletes a slice small enough not to delay other writes. */
export const deleteOldConnections = statement<{ before: number }>(
  build
    .delete(connection_logs)
    .where(
      inArray(
        connection_logs.key,
        build.select({ key: connection_logs.key }).from(connection_logs).where(isOld).limit(500),
      ),
    ),
);
