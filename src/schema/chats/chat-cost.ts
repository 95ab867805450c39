// Wire shapes of chat costs (facts/chats 6, facts/agents D): micros are millionths of a US dollar.
import { type Static, Type as t } from "@sinclair/typebox";
import { time, uuid } from "../fields.ts";
import { namedObject } from "../shape-names.ts";

const counts = {
  request_count: t.Integer({ description: "Model calls that reported their usage." }),
  unpriced_request_count: t.Integer({ description: "Calls whose model had no price; not included in any sum." }),
};
const sums = {
  total_cost_micros: t.Integer({ description: "Millionths of a US dollar; only calls with a price." }),
  ...counts,
  input_tokens: t.Integer({ description: "Excludes tokens read from or written to a cache." }),
  output_tokens: t.Integer(),
  cache_read_tokens: t.Integer(),
  cache_creation_tokens: t.Integer(),
};
const byModel = t.Array(
  namedObject("ModelCostSum", {
    model_config_id: t.String(),
    provider: t.String(),
    model: t.String(),
    display_name: t.String(),
    ...sums,
  }),
  { description: "Most expensive first." },
);

export const ChatCost = namedObject("ChatCost", {
  chat_id: uuid(),
  ...sums,
  by_model: byModel,
  turns: t.Array(
    t.Object({
      message_id: t.Integer({ description: "The user's message that began the turn." }),
      cost_micros: t.Union([t.Integer(), t.Null()], { description: "null if no call of the turn had a price." }),
      ...counts,
    }),
    { description: "The chat's latest 100 turns, newest first; excludes sub-chats." },
  ),
});
export type ChatCost = Static<typeof ChatCost>;

const range = {
  start_date: time(),
  end_date: time("Not included."),
};

export const UserCosts = namedObject("UserCosts", {
  ...range,
  count: t.Integer({ description: "Users who have spent something in the period." }),
  users: t.Array(
    t.Object({
      user_id: uuid(),
      username: t.String(),
      name: t.String(),
      avatar_url: t.String(),
      chat_count: t.Integer({ description: "Root chats." }),
      ...sums,
    }),
    { description: "Most expensive first." },
  ),
});
export type UserCosts = Static<typeof UserCosts>;

export const CostSummary = namedObject("CostSummary", {
  user_id: uuid(),
  ...range,
  ...sums,
  priced_request_count: t.Integer(),
  by_model: byModel,
  by_chat: t.Array(
    t.Object({
      root_chat_id: t.String(),
      title: t.String({ description: "Empty when the chat has been deleted." }),
      ...sums,
    }),
    { description: "Root chats with their sub-chats, most expensive first." },
  ),
  by_month: t.Array(t.Object({ month: t.String({ description: "YYYY-MM in UTC." }), ...sums })),
});
export type CostSummary = Static<typeof CostSummary>;
