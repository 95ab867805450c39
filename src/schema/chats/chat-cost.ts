// Wire shapes of chat costs (facts/chats 6, facts/agents D): micros are millionths of a US dollar.
import { type Static, Type as t } from "@sinclair/typebox";
import { avatarUrl, modelSpend, time, uuid } from "../fields.ts";
import { namedObject } from "../shape-names.ts";

const { request_count, unpriced_request_count } = modelSpend;
const byModel = t.Array(
  namedObject("ModelCostSum", {
    model_config_id: t.String({ description: "The ID of the model configuration; empty for calls without one." }),
    provider: t.String({ description: "The provider's kind, such as `anthropic`; may be empty." }),
    model: t.String({ description: "The provider's name for the model; may be empty." }),
    display_name: t.String(),
    ...modelSpend,
  }),
  { description: "The cost by model, most expensive first." },
);

export const ChatCost = namedObject("ChatCost", {
  chat_id: uuid("The ID of the requested chat. The sums include its root chat and all sub-chats of it."),
  ...modelSpend,
  by_model: byModel,
  turns: t.Array(
    t.Object({
      message_id: t.Integer({ description: "The ID of the user's message that began the turn." }),
      cost_micros: t.Union([t.Integer(), t.Null()], {
        description: "The cost of the turn in millionths of a US dollar; null if none of its calls had a price.",
      }),
      request_count,
      unpriced_request_count,
    }),
    { description: "The cost of the chat's latest 100 turns, newest first, excluding sub-chats." },
  ),
});
export type ChatCost = Static<typeof ChatCost>;

const range = {
  start_date: time("The beginning of the period."),
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
      avatar_url: avatarUrl,
      chat_count: t.Integer({ description: "The number of the user's root chats." }),
      ...modelSpend,
    }),
    { description: "The users with spending in the period, most expensive first." },
  ),
});
export type UserCosts = Static<typeof UserCosts>;

export const CostSummary = namedObject("CostSummary", {
  user_id: uuid(),
  ...range,
  ...modelSpend,
  priced_request_count: t.Integer({ description: "The number of calls whose model had a price." }),
  by_model: byModel,
  by_chat: t.Array(
    t.Object({
      root_chat_id: t.String({ description: "The ID of the root chat; empty for calls outside of chats." }),
      title: t.String({ description: "The chat's title; empty if the chat was deleted." }),
      ...modelSpend,
    }),
    { description: "The cost by root chat, including sub-chats, most expensive first." },
  ),
  by_month: t.Array(t.Object({ month: t.String({ description: "The month in UTC, as YYYY-MM." }), ...modelSpend }), {
    description: "The cost by month. Months without calls are omitted.",
  }),
});
export type CostSummary = Static<typeof CostSummary>;
