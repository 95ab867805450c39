// Wire shapes of chat costs (facts/chats 6, facts/agents D): micros are millionths of a US dollar.
import { type Static, Type as t } from "@sinclair/typebox";
import { time, uuid } from "../fields.ts";
import { namedObject } from "../shape-names.ts";

const counts = {
  request_count: t.Integer({ description: "The number of model calls that reported their usage." }),
  unpriced_request_count: t.Integer({
    description: "The number of calls whose model had no price. They are not included in any sum.",
  }),
};
const sums = {
  total_cost_micros: t.Integer({ description: "The total cost in millionths of a US dollar, of calls with a price." }),
  ...counts,
  input_tokens: t.Integer({
    description: "The number of input tokens, excluding tokens read from or written to a cache.",
  }),
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
  { description: "The cost by model, most expensive first." },
);

export const ChatCost = namedObject("ChatCost", {
  chat_id: uuid(),
  ...sums,
  by_model: byModel,
  turns: t.Array(
    t.Object({
      message_id: t.Integer({ description: "The ID of the user's message that began the turn." }),
      cost_micros: t.Union([t.Integer(), t.Null()], {
        description: "The cost of the turn in millionths of a US dollar; null if none of its calls had a price.",
      }),
      ...counts,
    }),
    { description: "The cost of the chat's latest 100 turns, newest first, excluding sub-chats." },
  ),
});
export type ChatCost = Static<typeof ChatCost>;

const range = {
  start_date: time(),
  end_date: time("The end of the period, exclusive."),
};

export const UserCosts = namedObject("UserCosts", {
  ...range,
  count: t.Integer({ description: "The number of users with spending in the period." }),
  users: t.Array(
    t.Object({
      user_id: uuid(),
      username: t.String(),
      name: t.String(),
      avatar_url: t.String(),
      chat_count: t.Integer({ description: "The number of the user's root chats." }),
      ...sums,
    }),
    { description: "The users with spending in the period, most expensive first." },
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
      title: t.String({ description: "The chat's title; empty if the chat was deleted." }),
      ...sums,
    }),
    { description: "The cost by root chat, including sub-chats, most expensive first." },
  ),
  by_month: t.Array(t.Object({ month: t.String({ description: "The month in UTC, as YYYY-MM." }), ...sums })),
});
export type CostSummary = Static<typeof CostSummary>;
