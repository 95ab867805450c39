// Usage and cost of chats' model calls. Rows are only added and summed, and never changed. Sums over many rows are for `store.scan`.
import { and, desc, eq, gte, lt, type SQL, sql } from "drizzle-orm";
import { build, eqParam, type Query, query, queryNow } from "../engine/sql.ts";
import { chats, messages } from "../schema/chats.ts";
import { model_spend } from "../schema/model-spend.ts";
import { model_configs, model_providers } from "../schema/models.ts";
import { users } from "../schema/users.ts";
import { workspaces } from "../schema/workspaces.ts";

/** The ledger fields of a chat. A root chat is its own root. Parameters: {chat}, its key. */
export const findLedgerFields = query(
  build
    .select({
      chat_id: chats.id,
      root_chat_id: sql<string>`coalesce(${chats.root_chat_id}, ${chats.parent_chat_id}, ${chats.id})`.as("root_chat"),
      organization_id: chats.organization_id,
      template_id: sql<string>`coalesce(${workspaces.template_id}, '')`.as("template"),
    })
    .from(chats)
    .leftJoin(workspaces, eq(workspaces.id, chats.workspace_id))
    .where(eq(chats.key, sql.placeholder("chat"))),
);

/** The user who is charged for the calls of a chat's coding agent, and the chat's ledger fields. Parameters: {id}. */
export const findChatPayer = query(
  build
    .select({
      owner_id: chats.owner_id,
      owner_status: users.status,
      organization_id: chats.organization_id,
      workspace_id: chats.workspace_id,
      root_chat_id: sql<string>`coalesce(${chats.root_chat_id}, ${chats.parent_chat_id}, ${chats.id})`.as("root_chat"),
      coding_agent: chats.coding_agent,
      status: chats.status,
    })
    .from(chats)
    .innerJoin(users, eq(users.id, chats.owner_id))
    .where(and(eqParam(chats.id), eq(users.deleted, false))),
);

/** Sums of costs and tokens. Calls without a price count as 0, and are counted separately. */
const sums = {
  total_cost_micros: sql<number>`coalesce(sum(${model_spend.cost_micros}), 0)`.as("total_cost_micros"),
  request_count: sql<number>`count(*)`.as("request_count"),
  unpriced_request_count: sql<number>`count(*) - count(${model_spend.cost_micros})`.as("unpriced_request_count"),
  input_tokens: sql<number>`coalesce(sum(${model_spend.input_tokens}), 0)`.as("input_tokens"),
  output_tokens: sql<number>`coalesce(sum(${model_spend.output_tokens}), 0)`.as("output_tokens"),
  cache_read_tokens: sql<number>`coalesce(sum(${model_spend.cache_read_tokens}), 0)`.as("cache_read_tokens"),
  cache_creation_tokens: sql<number>`coalesce(sum(${model_spend.cache_creation_tokens}), 0)`.as(
    "cache_creation_tokens",
  ),
};
export type SpendSums = { [K in keyof typeof sums]: number };

export const ZERO_SPEND: SpendSums = {
  total_cost_micros: 0,
  request_count: 0,
  unpriced_request_count: 0,
  input_tokens: 0,
  output_tokens: 0,
  cache_read_tokens: 0,
  cache_creation_tokens: 0,
};

/** The calls to sum: those of a root chat with its sub-chats, or of a user in a time range with an exclusive end. */
export type SpendFilter =
  | { readonly root: string }
  | { readonly user_id: string; readonly from: number; readonly to: number };

const matchesFilter = (filter: SpendFilter): SQL | undefined =>
  "root" in filter
    ? eq(model_spend.root_chat_id, filter.root)
    : and(
        eq(model_spend.user_id, filter.user_id),
        gte(model_spend.created_at, filter.from),
        lt(model_spend.created_at, filter.to),
      );

/** A user's spending in a time range with an exclusive end, in micros. */
export const sumCost = query(
  build
    .select({ spent: sql<number>`coalesce(sum(${model_spend.cost_micros}), 0)`.as("spent") })
    .from(model_spend)
    .where(
      and(
        eqParam(model_spend.user_id),
        gte(model_spend.created_at, sql.placeholder("from")),
        lt(model_spend.created_at, sql.placeholder("to")),
      ),
    ),
);

export const sumSpend = (filter: SpendFilter): Query<SpendSums> =>
  queryNow(build.select(sums).from(model_spend).where(matchesFilter(filter)));

/** One row per model, most expensive first. Deleted models keep their names. */
export const sumSpendByModel = (filter: SpendFilter) =>
  queryNow(
    build
      .select({
        ...sums,
        model_config_id: model_spend.model_config_id,
        display_name: sql<string>`coalesce(${model_configs.display_name}, '')`.as("display_name"),
        model: sql<string>`coalesce(${model_configs.model}, '')`.as("model"),
        provider: sql<string>`coalesce(${model_providers.provider}, '')`.as("provider"),
      })
      .from(model_spend)
      .leftJoin(model_configs, eq(model_configs.id, model_spend.model_config_id))
      .leftJoin(model_providers, eq(model_providers.id, model_configs.provider_id))
      .where(matchesFilter(filter))
      .groupBy(model_spend.model_config_id, model_configs.id, model_providers.id)
      .orderBy(desc(sql`total_cost_micros`), model_spend.model_config_id)
      .limit(MAX_ROWS),
  );

/** One row per root chat, most expensive first. Deleted chats have no title. */
export const sumSpendByChat = (filter: SpendFilter) =>
  queryNow(
    build
      .select({
        ...sums,
        root_chat_id: model_spend.root_chat_id,
        title: sql<string>`coalesce(${chats.title}, '')`.as("title"),
      })
      .from(model_spend)
      .leftJoin(chats, eq(chats.id, model_spend.root_chat_id))
      .where(matchesFilter(filter))
      .groupBy(model_spend.root_chat_id, chats.key)
      .orderBy(desc(sql`total_cost_micros`), model_spend.root_chat_id)
      .limit(MAX_ROWS),
  );

/** One row per month (UTC), oldest first. */
export const sumSpendByMonth = (filter: SpendFilter) =>
  queryNow(
    build
      .select({
        ...sums,
        month: sql<string>`strftime('%Y-%m', ${model_spend.created_at} / 1000, 'unixepoch')`.as("month"),
      })
      .from(model_spend)
      .where(matchesFilter(filter))
      .groupBy(sql`month`)
      .orderBy(sql`month`)
      .limit(MAX_ROWS),
  );

type SpenderFilter = { readonly from: number; readonly to: number; readonly search: string };

const isInRange = ({ from, to, search }: SpenderFilter) =>
  and(
    gte(model_spend.created_at, from),
    lt(model_spend.created_at, to),
    search === ""
      ? undefined
      : sql`(instr(lower(${users.username}), ${search}) > 0 or instr(lower(${users.name}), ${search}) > 0)`,
  );

/** One row per user with any spending, most expensive first. */
export const sumSpendByUser = (filter: SpenderFilter, page: { readonly limit: number; readonly offset: number }) =>
  queryNow(
    build
      .select({
        ...sums,
        user_id: model_spend.user_id,
        username: users.username,
        name: users.name,
        avatar_url: users.avatar_url,
        chat_count: sql<number>`count(distinct ${model_spend.root_chat_id})`.as("chat_count"),
      })
      .from(model_spend)
      .innerJoin(users, eq(users.id, model_spend.user_id))
      .where(isInRange(filter))
      .groupBy(model_spend.user_id, users.id)
      .orderBy(desc(sql`total_cost_micros`), users.username)
      .limit(page.limit)
      .offset(page.offset),
  );

export const countSpenders = (filter: SpenderFilter): Query<{ count: number }> =>
  queryNow(
    build
      .select({ count: sql<number>`count(distinct ${model_spend.user_id})`.as("count") })
      .from(model_spend)
      .innerJoin(users, eq(users.id, model_spend.user_id))
      .where(isInRange(filter)),
  );

/** Sums over the calls of each turn; `turn` is the message that began it. */
const turnColumns = {
  message_id: sql<number>`turn`.as("message_id"),
  cost_micros: sql<number | null>`sum(cost)`.as("cost_micros"),
  request_count: sql<number>`count(*)`.as("request_count"),
  unpriced_request_count: sql<number>`count(*) - count(cost)`.as("unpriced_request_count"),
};

/** The cost of each turn of a chat, newest first, including turns that edits removed. Parameters: {chat, limit}. */
export const listTurnCosts = (page: { chat: number; limit: number }) =>
  queryNow(
    build
      .select(turnColumns)
      .from(
        sql`(select cast(${messages.usage} ->> 'cost_micros' as bigint) as cost, ${messages.usage} as usage,
          max(case when ${messages.role} = 'user' and ${messages.visibility} <> 'model' then ${messages.id} end)
            over (order by ${messages.id}) as turn
          from ${messages} where ${messages.chat} = ${page.chat})`,
      )
      .where(sql`usage is not null and usage <> '{}' and turn is not null`)
      .groupBy(sql`turn`)
      .orderBy(desc(sql`turn`))
      .limit(page.limit),
  );

/**
 * The cost of each turn of a chat that a coding agent runs. The agent's calls go through the gateway, and each counts toward the turn of
 * the message before it.
 */
export const listAgentTurnCosts = (chat: { chat: number; chat_id: string; root: string; limit: number }) =>
  queryNow(
    build
      .select(turnColumns)
      .from(
        sql`(select s.cost_micros as cost,
          (select max(m.id) from ${messages} m
            where m.chat = ${chat.chat} and m.role = 'user' and m.visibility <> 'model' and m.created_at <= s.created_at) as turn
          from ${model_spend} s where s.root_chat_id = ${chat.root} and s.chat_id = ${chat.chat_id} and s.kind = 'gateway')`,
      )
      .where(sql`turn is not null`)
      .groupBy(sql`turn`)
      .orderBy(desc(sql`turn`))
      .limit(chat.limit),
  );

/** Maximum rows of a list. */
const MAX_ROWS = 1_000;
