// Writes of the connection log: the beginning and end of a connection, and the end of connections whose end was never reported. search.ts
// reads it.
import { and, eq, inArray, isNotNull, isNull, lt, notExists, sql } from "drizzle-orm";
import { build, given, query, statement } from "../engine/sql.ts";
import { agents } from "../schema/agents.ts";
import { connection_logs } from "../schema/connections.ts";
import { workspaces } from "../schema/workspaces.ts";

export type ConnectionRow = typeof connection_logs.$inferSelect;

/** What is known at the beginning. */
export type NewConnectionRow = Omit<ConnectionRow, "key" | "disconnect_time" | "disconnect_reason">;

const place = sql.placeholder;

/** Records the beginning of a connection. Leaves an existing entry unchanged. */
export const insertConnection = statement<NewConnectionRow>(
  build
    .insert(connection_logs)
    .values({
      id: place("id"),
      connect_time: place("connect_time"),
      type: place("type"),
      organization_id: place("organization_id"),
      workspace_id: place("workspace_id"),
      workspace_name: place("workspace_name"),
      owner_id: place("owner_id"),
      agent_id: place("agent_id"),
      agent_name: place("agent_name"),
      connection_id: place("connection_id"),
      status_code: place("status_code"),
      user_id: place("user_id"),
      ip: place("ip"),
      user_agent: place("user_agent"),
      target: place("target"),
    } as never)
    .onConflictDoNothing(),
);

type Ending = { readonly disconnect_time: number; readonly disconnect_reason: string };

const ending = {
  // Clocks differ, but a connection must not end before it began.
  disconnect_time: sql`max(${place("disconnect_time")}, ${connection_logs.connect_time})`,
  disconnect_reason: sql`${place("disconnect_reason")}`,
};
const isOpen = isNull(connection_logs.disconnect_time);

/** Ends a connection, unless it has already ended. */
export const endConnection = statement<Ending & { id: string }>(
  build
    .update(connection_logs)
    .set(ending)
    .where(and(given(connection_logs.id), isOpen)),
);

/** The same by the agent's ID of the connection. */
export const endReportedConnection = statement<
  Ending & { agent_id: string; connection_id: string; status_code: number }
>(
  build
    .update(connection_logs)
    .set({ ...ending, status_code: sql`${place("status_code")}` })
    .where(and(given(connection_logs.agent_id), given(connection_logs.connection_id), isOpen)),
);

/** Ends every connection of a server that no longer exists. */
export const endHeldConnections = statement<Ending>(
  build
    .update(connection_logs)
    .set(ending)
    .where(and(isOpen, isNull(connection_logs.connection_id))),
);

/** The same for workspaces of one shard, except the IDs in `but`, a JSON array. */
export const endHeldConnectionsInPart = statement<Ending & { part: number; but: string }>(
  build
    .update(connection_logs)
    .set(ending)
    .where(
      and(
        isOpen,
        isNull(connection_logs.connection_id),
        sql`${connection_logs.workspace_id} in (select w.id from workspaces w where w.part = ${place("part")})`,
        sql`${connection_logs.id} not in (select value from json_each(${place("but")}))`,
      ),
    ),
);

/** Ends the connections with these IDs, a JSON array. */
export const endConnectionsAmong = statement<Ending & { ids: string }>(
  build
    .update(connection_logs)
    .set(ending)
    .where(and(isOpen, sql`${connection_logs.id} in (select value from json_each(${place("ids")}))`)),
);

/** Ends connections that this agent reported before its restart. */
export const endConnectionsBefore = statement<Ending & { agent_id: string; before: number }>(
  build
    .update(connection_logs)
    .set(ending)
    .where(
      and(
        given(connection_logs.agent_id),
        isNotNull(connection_logs.connection_id),
        lt(connection_logs.connect_time, place("before")),
        isOpen,
      ),
    ),
);

/** Open, to an agent whose build is no longer the latest of an existing workspace. */
const ofGone = and(
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
export const findConnectionOfGone = query(
  build.select({ key: connection_logs.key }).from(connection_logs).where(ofGone).limit(1),
);
export const endConnectionsOfGone = statement<Ending>(build.update(connection_logs).set(ending).where(ofGone));

const old = lt(connection_logs.connect_time, place("before"));

/** {before}: an entry past its retention period. */
export const findOldConnection = query(
  build.select({ key: connection_logs.key }).from(connection_logs).where(old).limit(1),
);

/** Deletes a slice small enough not to delay other writes. */
export const deleteOldConnections = statement<{ before: number }>(
  build
    .delete(connection_logs)
    .where(
      inArray(
        connection_logs.key,
        build.select({ key: connection_logs.key }).from(connection_logs).where(old).limit(500),
      ),
    ),
);
