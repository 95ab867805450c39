// Pull requests of chats: reads them, stores answers of git hosts, and provides conditions for lists. Written only by
// actors/chat/background/pull-requests.ts.
import { eq, getTableColumns, or, type SQL, sql } from "drizzle-orm";
import { build, deleteBy, eqParam, insertInto, query, type RowOfQuery, type Statement } from "../engine/sql.ts";
import { clearTimer, setTimer } from "../engine/timers.ts";
import { chat_diffs } from "../schema/chat-diffs.ts";
import { chats } from "../schema/chats.ts";
import { indexPull, unindexPull } from "./search.ts";

export type ChatDiffRow = typeof chat_diffs.$inferSelect;

const { kept: _kept, failures: _failures, ...shownColumns } = getTableColumns(chat_diffs);

/** The columns that callers see. */
export const diffColumns = shownColumns;
export type ChatDiffView = Omit<ChatDiffRow, "kept" | "failures">;

/** The chat and its pull request, if any. Parameters: {id}. */
export const findChatDiff = query(
  build
    .select({
      chat: {
        key: chats.key,
        owner_id: chats.owner_id,
        part: chats.part,
        organization_id: chats.organization_id,
        workspace_id: chats.workspace_id,
        archived: chats.archived,
      },
      diff: chat_diffs,
    })
    .from(chats)
    .leftJoin(chat_diffs, eq(chat_diffs.chat, chats.key))
    .where(eqParam(chats.id)),
);
export type ChatWithDiffRow = RowOfQuery<typeof findChatDiff>;

const TIMER = "chat_diff";
const deleteDiff = deleteBy(chat_diffs, chat_diffs.chat);
const insertDiff = insertInto(chat_diffs);

/** Replaces a chat's row and schedules the next request to the host; null: after the next activity. */
export const replaceChatDiff = (chat_id: string, row: ChatDiffRow, due: number | null): Statement[] => [
  deleteDiff(row.chat),
  insertDiff(row),
  row.pr_number === null ? unindexPull(row.chat) : indexPull(row.chat, `${row.pr_number} ${row.pr_title}`),
  scheduleRefresh(chat_id, due),
];

/** Reschedules the next request to the host. */
export const scheduleRefresh = (chat_id: string, due: number | null): Statement =>
  due === null ? clearTimer(TIMER, chat_id, "refresh") : setTimer(TIMER, chat_id, "refresh", due);

export type PullFilter = {
  readonly statuses: readonly ("draft" | "open" | "merged" | "closed")[];
  readonly repo?: string | undefined;
  readonly title?: string | undefined;
  readonly number?: number | undefined;
  /** The URL of a pull request of the chat or one of its sub-chats. */
  readonly url?: string | undefined;
};

/** Returns conditions on the rows of `chats` in a query. The strings must be in lower case. */
export const buildPullConditions = ({ statuses, repo, title, number, url }: PullFilter): (SQL | undefined)[] => [
  statuses.length === 0 ? undefined : hasDiffWhere(or(...statuses.map((one) => STATUS_CONDITIONS[one]))),
  repo === undefined
    ? undefined
    : hasDiffWhere(sql`(instr(lower(d.remote_origin), ${repo}) > 0 or instr(lower(d.url), ${repo}) > 0)`),
  title === undefined
    ? undefined
    : hasDiffWhere(sql`d.pr_number is not null and instr(lower(d.pr_title), ${title}) > 0`),
  number === undefined ? undefined : hasDiffWhere(sql`d.pr_number = ${number}`),
  url === undefined
    ? undefined
    : sql`exists (select 1 from chat_diffs d join chats f on f.key = d.chat
        where lower(d.url) = ${url} and (f.key = ${chats.key} or f.parent_chat_id = ${chats.id}))`,
];

const hasDiffWhere = (condition: SQL | undefined): SQL =>
  sql`exists (select 1 from chat_diffs d where d.chat = ${chats.key} and ${condition})`;

const STATUS_CONDITIONS = {
  draft: sql`(d.pr_state = 'open' and d.pr_draft = 1)`,
  open: sql`(d.pr_state = 'open' and d.pr_draft = 0)`,
  merged: sql`d.pr_state = 'merged'`,
  closed: sql`d.pr_state = 'closed'`,
} as const;
