// Chats: reading by key, and the statements of the chat actor. Messages and queues are in messages.ts, lists in list.ts and views.ts.
import { and, asc, eq, isNotNull, isNull, type SQL, sql } from "drizzle-orm";
import {
  build,
  eqParam,
  findBy,
  insertInto,
  query,
  type RowOfQuery,
  type Statement,
  statement,
  updateBy,
} from "../engine/sql.ts";
import { forOwnRows, isOwn } from "../own-rows.ts";
import { chats } from "../schema/chats.ts";

export type ChatRow = typeof chats.$inferSelect;
export type { DynamicTool } from "../schema/chats.ts";

/** A chat by its ID. Parameters: {id}. */
export const findChat = findBy(chats, chats.id);

/** The outcomes of several chats; `ids` is a JSON array. For `scan`. */
export const listChatOutcomes = query(
  build
    .select({
      id: chats.id,
      status: chats.status,
      last_error: chats.last_error,
      last_turn_summary: chats.last_turn_summary,
      updated_at: chats.updated_at,
    })
    .from(chats)
    .where(sql`${chats.id} in (select value from json_each(${sql.placeholder("ids")}))`),
);
export type ChatOutcome = RowOfQuery<typeof listChatOutcomes>;

/** The session of a chat's coding agent. Parameters: {id}. */
export const findAgentSession = query(
  build.select({ agent_session: chats.agent_session }).from(chats).where(eqParam(chats.id)),
);

const accessColumns = {
  id: chats.id,
  key: chats.key,
  owner_id: chats.owner_id,
  organization_id: chats.organization_id,
  parent_chat_id: chats.parent_chat_id,
  workspace_id: chats.workspace_id,
  coding_agent: chats.coding_agent,
  archived: chats.archived,
} as const;

/** The columns that decide who may see a chat. Parameters: {id}. */
export const findChatAccessRow = query(build.select(accessColumns).from(chats).where(eqParam(chats.id)));
/** Like `findChatAccessRow`, for several chats; `ids` is a JSON array. For `scan`. */
export const listChatAccessRows = query(
  build
    .select(accessColumns)
    .from(chats)
    .where(sql`${chats.id} in (select value from json_each(${sql.placeholder("ids")}))`),
);
export type ChatAccessRow = Pick<
  ChatRow,
  "id" | "key" | "owner_id" | "organization_id" | "parent_chat_id" | "workspace_id" | "coding_agent" | "archived"
>;

/** The sub-chats of a root chat, newest first. Parameters: {root}. */
export const listChildren = query(
  build
    .select()
    .from(chats)
    .where(eq(chats.parent_chat_id, sql.placeholder("root")))
    .orderBy(sql`${chats.created_at} desc`),
);

/** Must equal the condition of the index `chats_busy`, without parameters. Otherwise, each startup would read the whole table. */
const isBusy = sql`${chats.status} in ('running', 'interrupting')`;
const busyChats = (where: SQL | undefined) =>
  build.select({ id: chats.id, status: chats.status }).from(chats).where(where).orderBy(asc(chats.updated_at));

/** Chats with a turn or interrupt that must be resumed at startup. */
export const listBusyChats = forOwnRows(query(busyChats(isBusy)), query(busyChats(and(isBusy, isOwn(chats.part)))));

/** The number of chats working in a workspace. Parameters: {workspace_id}. Excludes chats that wait for a budget or a person. */
export const countWorkingChats = query(
  build
    .select({ count: sql<number>`count(*)` })
    .from(chats)
    .where(and(eqParam(chats.workspace_id), isBusy, isNull(chats.budget_pause))),
);

export const insertChat = insertInto(chats);
/** Chats whose turn waits for a budget. */
export const listPausedChats = query(
  build.select({ id: chats.id, budget_pause: chats.budget_pause }).from(chats).where(isNotNull(chats.budget_pause)),
);

/** Updates metadata of a chat. The execution state is written only by `saveExecution`. */
export const updateChat = updateBy(chats, chats.id);

/** The columns that transitions change. */
export type ExecutionColumns = Pick<
  ChatRow,
  | "status"
  | "archived"
  | "last_error"
  | "retry_state"
  | "requires_action_deadline"
  | "pending_calls"
  | "compaction"
  | "budget_pause"
  | "snapshot_version"
  | "history_version"
  | "queue_version"
  | "retry_version"
  | "generation_attempt"
  | "last_assistant_id"
  | "asked_by"
  | "updated_at"
>;

const EXECUTION = [
  "status",
  "archived",
  "last_error",
  "retry_state",
  "requires_action_deadline",
  "pending_calls",
  "compaction",
  "budget_pause",
  "snapshot_version",
  "history_version",
  "queue_version",
  "retry_version",
  "generation_attempt",
  "last_assistant_id",
  "asked_by",
  "updated_at",
] as const satisfies readonly (keyof ExecutionColumns)[];

const saveColumns = statement<ExecutionColumns & { id: string; expected: number }>(
  build
    .update(chats)
    .set(Object.fromEntries(EXECUTION.map((name) => [name, sql.placeholder(name)])) as never)
    .where(and(eqParam(chats.id), eq(chats.snapshot_version, sql.placeholder("expected")))),
  { expect: 1 },
);

/** Stores the execution state after a transition. Rejected as `stale` when the chat has changed since version `expected`. */
export const saveExecution = (id: string, expected: number, next: ExecutionColumns): Statement =>
  saveColumns({
    ...(Object.fromEntries(EXECUTION.map((name) => [name, next[name]])) as ExecutionColumns),
    id,
    expected,
  });

const guardPermissionsById = statement<{ id: string; known: string | null }>(
  build
    .update(chats)
    .set({ permissions: sql`${chats.permissions}` })
    .where(and(eqParam(chats.id), sql`${chats.permissions} is not distinct from ${sql.placeholder("known")}`)),
  { expect: 1 },
);
/** A guard: rejects the batch as `stale` when the chat's permissions were changed concurrently. */
export const guardPermissions = ({ id, permissions }: Pick<ChatRow, "id" | "permissions">): Statement =>
  guardPermissionsById({ id, known: permissions === null ? null : JSON.stringify(permissions) });

const setReadCursor = statement<{ id: string }>(
  build
    .update(chats)
    .set({ read_cursor: sql`max(${chats.read_cursor}, ${chats.last_assistant_id})` })
    .where(eqParam(chats.id)),
);
/** Marks all messages so far as read by the owner. */
export const markChatRead = (id: string): Statement => setReadCursor({ id });

const pinLast = statement<{ id: string; owner_id: string }>(
  build
    .update(chats)
    .set({
      pin_order: sql`(select coalesce(max(p.pin_order), 0) + 1 from chats p where p.owner_id = ${sql.placeholder("owner_id")})`,
    })
    .where(and(eqParam(chats.id), eq(chats.pin_order, 0))),
);
const closePinGap = statement<{ id: string; owner_id: string }>(
  build
    .update(chats)
    .set({ pin_order: sql`${chats.pin_order} - 1` })
    .where(
      sql`${chats.owner_id} = ${sql.placeholder("owner_id")} and ${chats.pin_order} > (select nullif(p.pin_order, 0) from chats p where p.id = ${sql.placeholder("id")})`,
    ),
);
const clearPin = statement<{ id: string }>(build.update(chats).set({ pin_order: 0 }).where(eqParam(chats.id)));
const shiftPins = statement<{ owner_id: string; at: number }>(
  build
    .update(chats)
    .set({ pin_order: sql`${chats.pin_order} + 1` })
    .where(
      sql`${chats.owner_id} = ${sql.placeholder("owner_id")} and ${chats.pin_order} >= ${sql.placeholder("at")} and ${chats.pin_order} > 0`,
    ),
);
const insertPin = statement<{ id: string; owner_id: string; at: number }>(
  build
    .update(chats)
    .set({
      pin_order: sql`min(${sql.placeholder("at")}, (select count(*) + 1 from chats p where p.owner_id = ${sql.placeholder("owner_id")} and p.pin_order > 0))`,
    })
    .where(eqParam(chats.id)),
);

/** Pins a chat after the owner's other pinned ones. Does nothing if it is already pinned. */
export const pinChat = (id: string, owner_id: string): Statement[] => [pinLast({ id, owner_id })];

/** Unpins a chat and closes the gap. */
export const unpinChat = (id: string, owner_id: string): Statement[] => [
  closePinGap({ id, owner_id }),
  clearPin({ id }),
];

/** Moves a pinned chat to position `at`, counted from 1, or to the end if there are fewer pinned chats. */
export const movePin = (id: string, owner_id: string, at: number): Statement[] => [
  ...unpinChat(id, owner_id),
  shiftPins({ owner_id, at }),
  insertPin({ id, owner_id, at }),
];
