// Writes of the connection log: the beginning of a connection, its end, and the end of those whose end nobody has told. How it is read is
// in search.ts.
import { and, eq, inArray, isNotNull, isNull, lt, notExists, sql } from "drizzle-orm";
import { build, given, query, statement } from "../engine/sql.ts";
import { agents } from "../schema/agents.ts";
import { connection_logs } from "../schema/connections.ts";
import { workspaces } from "../schema/workspaces.ts";

export type ConnectionRow = typeof connection_logs.$inferSelect;

/** What is known when it begins. */
export type NewConnectionRow = Omit<ConnectionRow, "key" | "disconnect_time" | "disconnect_reason">;

const place = sql.placeholder;

/** A connection begins; one that its agent has told of before is left as it is. */
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
  // Clocks differ: nothing ends before it has begun.
  disconnect_time: sql`max(${place("disconnect_time")}, ${connection_logs.connect_time})`,
  disconnect_reason: sql`${place("disconnect_reason")}`,
};
const isOpen = isNull(connection_logs.disconnect_time);

/** One connection has ended, unless it had before. */
export const endConnection = statement<Ending & { id: string }>(
  build
    .update(connection_logs)
    .set(ending)
    .where(and(given(connection_logs.id), isOpen)),
);

/** The same by what its agent calls it. */
export const endReportedConnection = statement<
  Ending & { agent_id: string; connection_id: string; status_code: number }
>(
  build
    .update(connection_logs)
    .set({ ...ending, status_code: sql`${place("status_code")}` })
    .where(and(given(connection_logs.agent_id), given(connection_logs.connection_id), isOpen)),
);

/** Every connection that a server held which is no more. */
export const endHeldConnections = statement<Ending>(
  build
    .update(connection_logs)
    .set(ending)
    .where(and(isOpen, isNull(connection_logs.connection_id))),
);

/** The same of the workspaces of one part, `but` those with these ids: a JSON array of them. */
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

/** Those with these ids, a JSON array. */
export const endConnectionsAmong = statement<Ending & { ids: string }>(
  build
    .update(connection_logs)
    .set(ending)
    .where(and(isOpen, sql`${connection_logs.id} in (select value from json_each(${place("ids")}))`)),
);

/** What this agent has told of before it began again. */
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

/** Open, to an agent whose build is no longer the latest of a workspace that is there. */
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

/** {before}: an entry that retention lets go. */
export const findOldConnection = query(
  build.select({ key: connection_logs.key }).from(connection_logs).where(old).limit(1),
);

/** A slice of them, small enough that nobody waits for it. */
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
