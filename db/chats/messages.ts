// The history and queues of chats. Histories are long, so they are read page by page, by message ID.
import {
  and,
  asc,
  desc,
  eq,
  getTableColumns,
  gt,
  gte,
  inArray,
  isNotNull,
  isNull,
  lt,
  lte,
  ne,
  type SQL,
  sql,
} from "drizzle-orm";
import { build, deleteBy, eqParam, insertInto, query, statement, updateBy } from "../engine/sql.ts";
import { messages, queued_messages } from "../schema/chats.ts";

export type MessageRow = typeof messages.$inferSelect;

const chat = sql.placeholder("chat");
const isInChat = and(eq(messages.chat, chat), eq(messages.deleted, false));
const isForModel = and(isInChat, inArray(messages.visibility, ["model", "both"]));
const isForPeople = and(isInChat, inArray(messages.visibility, ["user", "both"]));

/** Maximum bytes of messages that are read for one page, because parsing and sending them blocks other requests. */
const MAX_PAGE_BYTES = 4 * 1024 * 1024;
/** Maximum bytes of messages that are read for a model. Models accept less than that. */
const MAX_HISTORY_BYTES = 16 * 1024 * 1024;

const sized = {
  ...getTableColumns(messages),
  bytes: sql<number>`octet_length(${messages.content})`.mapWith(Number).as("bytes"),
};

type Fit = { readonly order: "asc" | "desc"; readonly limit?: SQL; readonly maxBytes: number };

/** Selects the first of these messages, at least one, up to about `maxBytes`. Uses the stored sizes, without reading the messages. */
const fitsPage = (rows: SQL | undefined, { order, limit = sql``, maxBytes }: Fit): SQL => {
  const direction = sql.raw(order);
  return sql`${messages.id} in (select page.id from (select one.id, sum(one.bytes) over (order by one.id ${direction}) - one.bytes as ahead
    from (select ${messages.id} as id, octet_length(${messages.content}) as bytes from ${messages} where ${rows}
      order by ${messages.id} ${direction} ${limit}) one) page where page.ahead < ${sql.raw(String(maxBytes))})`;
};

const isFull = (rows: readonly { readonly bytes: number }[], maxBytes: number): boolean =>
  rows.reduce((sum, { bytes }) => sum + bytes, 0) >= maxBytes;

/** Returns whether a page has reached its maximum bytes, so that there may be more messages. */
export const isFullPage = (rows: readonly { readonly bytes: number }[]): boolean => isFull(rows, MAX_PAGE_BYTES);

const limit = sql`limit ${sql.placeholder("limit")}`;
const isBetween = and(
  isForPeople,
  gt(messages.id, sql.placeholder("after")),
  lt(messages.id, sql.placeholder("before")),
);
const isAtRevision = and(isBetween, lte(messages.revision, sql.placeholder("revision")));

/**
 * Messages that people can see with `after` < id < `before`, ascending, up to `revision`, as many as fit into a page. Parameters: {chat,
 * after, before, revision, limit}.
 */
export const listMessages = query(
  build
    .select(sized)
    .from(messages)
    .where(fitsPage(isAtRevision, { order: "asc", limit, maxBytes: MAX_PAGE_BYTES }))
    .orderBy(asc(messages.id)),
);

/** Messages that people can see with `after` < id < `before`, newest first. Parameters: {chat, after, before, limit}. */
export const listNewestMessages = query(
  build
    .select(sized)
    .from(messages)
    .where(fitsPage(isBetween, { order: "desc", limit, maxBytes: MAX_PAGE_BYTES }))
    .orderBy(desc(messages.id)),
);

/** Excludes messages that consist only of files, which are not prompts. Text that people write is never empty. */
const hasText = sql`exists (select 1 from json_each(${messages.content}) part where part.value ->> 'type' = 'text')`;

/** The author's custom prompt that a hook saw with the newest message of a person. Parameters: {chat}. */
export const findCustomPrompt = query(
  build
    .select({ custom_prompt: messages.custom_prompt })
    .from(messages)
    .where(and(isForPeople, eq(messages.role, "user")))
    .orderBy(desc(messages.id))
    .limit(1),
);

const namesContext = sql`(${messages.content} ->> '$[0].type') in ('context-file', 'skill')`;

/** The newest row that lists the chat's context files and skills. Parameters: {chat}. */
export const findContextRow = query(
  build
    .select({ content: messages.content })
    .from(messages)
    .where(and(isForPeople, eq(messages.role, "system"), namesContext))
    .orderBy(desc(messages.id))
    .limit(1),
);

const isPromptAfter = and(isForPeople, eq(messages.role, "user"), gt(messages.id, sql.placeholder("after")));

/** Messages of people after this one, newest first, as many as fit into a page. Parameters: {chat, after, limit}. */
export const listPrompts = query(
  build
    .select({ id: messages.id, content: messages.content })
    .from(messages)
    .where(and(fitsPage(isPromptAfter, { order: "desc", maxBytes: MAX_PAGE_BYTES }), hasText))
    .orderBy(desc(messages.id))
    .limit(sql.placeholder("limit")),
);

const isFrom = and(isForModel, gte(messages.id, sql.placeholder("from")));

/**
 * The messages of a model's context from this one on: this message, and the newest others that fit into `MAX_HISTORY_BYTES`. Parameters:
 * {chat, from}.
 */
export const listModelHistory = query(
  build
    .select(sized)
    .from(messages)
    .where(
      and(
        isFrom,
        sql`(${messages.id} = ${sql.placeholder("from")} or ${fitsPage(isFrom, { order: "desc", maxBytes: MAX_HISTORY_BYTES })})`,
      ),
    )
    .orderBy(asc(messages.id)),
);

/** The total size of all messages of a model's context from this one on, in bytes. Parameters: {chat, from}. */
export const sumModelHistoryBytes = query(
  build
    .select({ bytes: sql<number>`coalesce(sum(octet_length(${messages.content})), 0)`.mapWith(Number).as("bytes") })
    .from(messages)
    .where(isFrom),
);

/** Maximum bytes of the messages that are read for a model: one message can begin below the limit and end above it. */
export const MAX_MODEL_BYTES = MAX_HISTORY_BYTES + MAX_PAGE_BYTES;

/** Returns whether older messages were omitted from the messages for a model. */
export const isTruncatedHistory = (rows: readonly { readonly bytes: number }[]): boolean =>
  isFull(rows, MAX_HISTORY_BYTES);

const isUpTo = and(isInChat, lte(messages.id, sql.placeholder("up_to")));

/** The history up to and including this message. Parameters: {chat, up_to}. */
export const listHistoryUpTo = query(build.select().from(messages).where(isUpTo).orderBy(asc(messages.id)));

/** Messages that reference files, including results of tools. Parameters: {chat}. */
export const listFileMessages = query(
  build
    .select({ id: messages.id, content: messages.content })
    .from(messages)
    .where(and(isInChat, sql`${messages.content} like '%file_id%'`)),
);

/** The total size of the history up to and including this message, in bytes. Parameters: {chat, up_to}. */
export const sumHistoryBytesUpTo = query(
  build
    .select({ bytes: sql<number>`coalesce(sum(octet_length(${messages.content})), 0)`.mapWith(Number).as("bytes") })
    .from(messages)
    .where(isUpTo),
);

/** The newest row that replaces everything before it. Parameters: {chat}. */
export const findMarker = query(
  build
    .select({ id: messages.id, replayed: messages.replayed })
    .from(messages)
    .where(and(isInChat, isNotNull(messages.replayed)))
    .orderBy(desc(messages.id))
    .limit(1),
);

/** The newest row that clears the chat's context. Parameters: {chat}. */
export const findClearing = query(
  build
    .select({ id: messages.id })
    .from(messages)
    .where(and(isInChat, isNotNull(messages.replayed), sql`json_array_length(${messages.content}) = 0`))
    .orderBy(desc(messages.id))
    .limit(1),
);

/** A message of the model's context after this one that is not an instruction. Parameters: {chat, after}. */
export const findModelMessageAfter = query(
  build
    .select({ id: messages.id })
    .from(messages)
    .where(and(isForModel, gt(messages.id, sql.placeholder("after")), ne(messages.role, "system")))
    .limit(1),
);

/** An answer of a model after this message. Parameters: {chat, after}. */
export const findAnswerAfter = query(
  build
    .select({ id: messages.id })
    .from(messages)
    .where(and(isForModel, gt(messages.id, sql.placeholder("after")), inArray(messages.role, ["assistant", "tool"])))
    .limit(1),
);

/** System rows before this message. Parameters: {chat, before}. */
export const listSystemRows = query(
  build
    .select(sized)
    .from(messages)
    .where(and(isForModel, eq(messages.role, "system"), lt(messages.id, sql.placeholder("before"))))
    .orderBy(asc(messages.id)),
);

/** Messages of the model's context before this one, newest first. Parameters: {chat, before, limit}. */
export const listModelBefore = query(
  build
    .select(sized)
    .from(messages)
    .where(and(isForModel, isNull(messages.replayed), lt(messages.id, sql.placeholder("before"))))
    .orderBy(desc(messages.id))
    .limit(sql.placeholder("limit")),
);

const sizesBefore = build
  .select({ bytes: sql<number>`octet_length(${messages.content})`.as("bytes") })
  .from(messages)
  .where(and(isForModel, isNull(messages.replayed), lt(messages.id, sql.placeholder("before"))))
  .orderBy(desc(messages.id))
  .limit(sql.placeholder("limit"))
  .as("sizes");

/** The total size of the messages of the model's context before this one, in bytes. Parameters: {chat, before, limit}. */
export const sumModelBytesBefore = query(
  build
    .select({ bytes: sql<number>`coalesce(sum(${sizesBefore.bytes}), 0)`.mapWith(Number).as("bytes") })
    .from(sizesBefore),
);

/** One message of a chat, including deleted ones. Parameters: {chat, id}. */
export const findMessage = query(
  build
    .select()
    .from(messages)
    .where(and(eqParam(messages.id), eq(messages.chat, chat))),
);

const isAnswerAfter = and(
  ...[eq(messages.chat, chat), eq(messages.role, "assistant"), gt(messages.id, sql.placeholder("after"))],
);

/**
 * Assistant messages after this one, also removed ones, as many as fit into a page. `calls` is the content as stored, or
 * null if it has no call. It is not parsed: PostgreSQL refuses JSON with an escaped NUL or a lone surrogate. Parameters: {chat, after}.
 */
export const listCallTexts = query(
  build
    .select({
      id: messages.id,
      calls: sql<
        string | null
      >`case when instr(${messages.content}, '"tool_call_id":"') > 0 then ${messages.content} end`.as("calls"),
    })
    .from(messages)
    .where(fitsPage(isAnswerAfter, { order: "asc", limit: sql`limit 1000`, maxBytes: MAX_PAGE_BYTES }))
    .orderBy(asc(messages.id)),
);

/** IDs of the messages that people can see, from `from` on. Parameters: {chat, from}. */
export const listMessageIds = query(
  build
    .select({ id: messages.id })
    .from(messages)
    .where(and(isForPeople, gte(messages.id, sql.placeholder("from"))))
    .orderBy(asc(messages.id)),
);

/** A person's message after this one, skipping `skip` others. Includes messages that edits removed. Parameters: {chat, after, skip}. */
export const findWrittenAfter = query(
  build
    .select({ id: messages.id })
    .from(messages)
    .where(
      and(
        ...[eq(messages.chat, chat), gt(messages.id, sql.placeholder("after")), eq(messages.role, "user")],
        ne(messages.visibility, "model"),
      ),
    )
    .orderBy(asc(messages.id))
    .limit(1)
    .offset(sql.placeholder("skip")),
);

/** The newest assistant message that people can see before `before`. Parameters: {chat, before}. */
export const findAssistantBefore = query(
  build
    .select({ id: messages.id })
    .from(messages)
    .where(and(isForPeople, eq(messages.role, "assistant"), lt(messages.id, sql.placeholder("before"))))
    .orderBy(desc(messages.id))
    .limit(1),
);

export const insertMessages = insertInto(messages);

/** Removes a message and all later ones from the history. */
export const deleteMessagesFrom = statement<{ chat: number; from: number; revision: number }>(
  build
    .update(messages)
    .set({ deleted: true, revision: sql`${sql.placeholder("revision")}` })
    .where(and(isInChat, gte(messages.id, sql.placeholder("from")))),
);

/** The queued messages of a chat, in the order in which they will be sent. Parameters: {chat}. */
export const listQueued = query(
  build.select().from(queued_messages).where(eq(queued_messages.chat, chat)).orderBy(asc(queued_messages.position)),
);
export const insertQueued = insertInto(queued_messages);
export const updateQueued = updateBy(queued_messages, queued_messages.id);
export const deleteQueued = deleteBy(queued_messages, queued_messages.id);
