// The history of chats and what waits in their queues. Histories are long: anyone who reads one reads pages, by number.
import { and, asc, desc, eq, gt, gte, inArray, isNotNull, isNull, lt, lte, ne, sql } from "drizzle-orm";
import { build, deleteBy, given, insertInto, query, statement, updateBy } from "../engine/sql.ts";
import { messages, queued_messages } from "../schema/chats.ts";

export type MessageRow = typeof messages.$inferSelect;

const chat = sql.placeholder("chat");
const ofChat = and(eq(messages.chat, chat), eq(messages.deleted, false));
const forModel = and(ofChat, inArray(messages.visibility, ["model", "both"]));
const forPeople = and(ofChat, inArray(messages.visibility, ["user", "both"]));

/** Messages people can see with `after` < id < `before`, ascending, as they stood at `revision`: {chat, after, before, revision, limit}. */
export const listMessages = query(
  build
    .select()
    .from(messages)
    .where(
      and(
        forPeople,
        gt(messages.id, sql.placeholder("after")),
        lt(messages.id, sql.placeholder("before")),
        lte(messages.revision, sql.placeholder("revision")),
      ),
    )
    .orderBy(asc(messages.id))
    .limit(sql.placeholder("limit")),
);

/** The same, newest first: {chat, after, before, limit}. */
export const listNewestMessages = query(
  build
    .select()
    .from(messages)
    .where(and(forPeople, gt(messages.id, sql.placeholder("after")), lt(messages.id, sql.placeholder("before"))))
    .orderBy(desc(messages.id))
    .limit(sql.placeholder("limit")),
);

/** A message of files alone is no prompt. What people write has no empty text. */
const hasText = sql`exists (select 1 from json_each(${messages.content}) part where part.value ->> 'type' = 'text')`;

/** What a hook has seen of the author's own prompt with the newest message that people have written: {chat}. */
export const findCustomPrompt = query(
  build
    .select({ custom_prompt: messages.custom_prompt })
    .from(messages)
    .where(and(forPeople, eq(messages.role, "user")))
    .orderBy(desc(messages.id))
    .limit(1),
);

const namesContext = sql`(${messages.content} ->> '$[0].type') in ('context-file', 'skill')`;

/** The newest row that says which files and skills the chat goes by: {chat}. */
export const findContextRow = query(
  build
    .select({ content: messages.content })
    .from(messages)
    .where(and(forPeople, eq(messages.role, "system"), namesContext))
    .orderBy(desc(messages.id))
    .limit(1),
);

/** What people have written after this message, newest first: {chat, after, limit}. */
export const listPrompts = query(
  build
    .select({ id: messages.id, content: messages.content })
    .from(messages)
    .where(and(forPeople, eq(messages.role, "user"), hasText, gt(messages.id, sql.placeholder("after"))))
    .orderBy(desc(messages.id))
    .limit(sql.placeholder("limit")),
);

/** What a model is given from this message on: {chat, from}. */
export const listModelHistory = query(
  build
    .select()
    .from(messages)
    .where(and(forModel, gte(messages.id, sql.placeholder("from"))))
    .orderBy(asc(messages.id)),
);

/** Everything that is in the history up to this message: {chat, up_to}. */
export const listHistoryUpTo = query(
  build
    .select()
    .from(messages)
    .where(and(ofChat, lte(messages.id, sql.placeholder("up_to"))))
    .orderBy(asc(messages.id)),
);

/** The newest row that stands for what came before it: {chat}. */
export const findMarker = query(
  build
    .select({ id: messages.id, replayed: messages.replayed })
    .from(messages)
    .where(and(ofChat, isNotNull(messages.replayed)))
    .orderBy(desc(messages.id))
    .limit(1),
);

/** The newest row that stands for nothing: from there on the chat was begun again: {chat}. */
export const findClearing = query(
  build
    .select({ id: messages.id })
    .from(messages)
    .where(and(ofChat, isNotNull(messages.replayed), sql`json_array_length(${messages.content}) = 0`))
    .orderBy(desc(messages.id))
    .limit(1),
);

/** Something for a model that is no instruction, after this message: {chat, after}. */
export const findSaidAfter = query(
  build
    .select({ id: messages.id })
    .from(messages)
    .where(and(forModel, gt(messages.id, sql.placeholder("after")), ne(messages.role, "system")))
    .limit(1),
);

/** Something that a model has answered after this message: {chat, after}. */
export const findAnswerAfter = query(
  build
    .select({ id: messages.id })
    .from(messages)
    .where(and(forModel, gt(messages.id, sql.placeholder("after")), inArray(messages.role, ["assistant", "tool"])))
    .limit(1),
);

/** The system's rows before this message: {chat, before}. */
export const listSystemRows = query(
  build
    .select()
    .from(messages)
    .where(and(forModel, eq(messages.role, "system"), lt(messages.id, sql.placeholder("before"))))
    .orderBy(asc(messages.id)),
);

/** What a model was given just before this message, newest first: {chat, before, limit}. */
export const listModelBefore = query(
  build
    .select()
    .from(messages)
    .where(and(forModel, isNull(messages.replayed), lt(messages.id, sql.placeholder("before"))))
    .orderBy(desc(messages.id))
    .limit(sql.placeholder("limit")),
);

/** One message of a chat, also a deleted one: {chat, id}. */
export const findMessage = query(
  build
    .select()
    .from(messages)
    .where(and(given(messages.id), eq(messages.chat, chat))),
);

/** The numbers of the messages people can see from `from` on: {chat, from}. */
export const listMessageIds = query(
  build
    .select({ id: messages.id })
    .from(messages)
    .where(and(forPeople, gte(messages.id, sql.placeholder("from"))))
    .orderBy(asc(messages.id)),
);

/** Something that people have written after this message, past `skip` others, also what was edited away: {chat, after, skip}. */
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

/** The newest assistant message people can see before `before`: {chat, before}. */
export const findAssistantBefore = query(
  build
    .select({ id: messages.id })
    .from(messages)
    .where(and(forPeople, eq(messages.role, "assistant"), lt(messages.id, sql.placeholder("before"))))
    .orderBy(desc(messages.id))
    .limit(1),
);

export const insertMessages = insertInto(messages);

/** Takes a message and all later ones out of the history. */
export const deleteMessagesFrom = statement<{ chat: number; from: number; revision: number }>(
  build
    .update(messages)
    .set({ deleted: true, revision: sql`${sql.placeholder("revision")}` })
    .where(and(ofChat, gte(messages.id, sql.placeholder("from")))),
);

/** {chat}, in the order in which they will be sent. */
export const listQueued = query(
  build.select().from(queued_messages).where(eq(queued_messages.chat, chat)).orderBy(asc(queued_messages.position)),
);
export const insertQueued = insertInto(queued_messages);
export const updateQueued = updateBy(queued_messages, queued_messages.id);
export const deleteQueued = deleteBy(queued_messages, queued_messages.id);
