// What a chat has used, in money (facts/chats 6).
import { type Static, Type as t } from "@sinclair/typebox";

export const ChatCost = t.Object({
  chat_id: t.String({ format: "uuid" }),
  total_cost_micros: t.Integer({ description: "Millionths of a currency unit; 0 while models have no prices." }),
  request_count: t.Integer({ description: "Model calls that reported what they used." }),
  unpriced_request_count: t.Integer({ description: "Those of models without a price." }),
});
export type ChatCost = Static<typeof ChatCost>;
