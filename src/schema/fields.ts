// Fields that several wire shapes share: IDs, times, token counts and costs of model calls.
import { Type as t } from "@sinclair/typebox";

const toOptions = (description: string | undefined) => (description === undefined ? {} : { description });

export const uuid = (description?: string) => t.String({ format: "uuid", ...toOptions(description) });

/** RFC 3339. */
export const time = (description?: string) => t.String({ format: "date-time", ...toOptions(description) });

export const optionalTime = (description: string) => t.Optional(time(description));

export const iconUrl = t.String({ description: "The URL or path of the icon; may be empty." });
export const avatarUrl = t.String({ description: "The URL of the avatar; may be empty." });

export const parentChatId = t.Optional(uuid("The ID of the chat that started this sub-chat; absent for root chats."));

export const rootChatId = t.Optional(uuid("The ID of the root chat of this sub-chat; absent for root chats."));

const count = (description: string) => t.Integer({ description });

/** The tokens of one model call, or of several together. */
export const tokenCounts = {
  input_tokens: count("The number of input tokens, excluding tokens read from or written to a cache."),
  output_tokens: count("The number of output tokens, including reasoning tokens."),
  cache_read_tokens: count("The number of prompt tokens that the provider read from its cache."),
  cache_creation_tokens: count("The number of prompt tokens that the provider wrote to its cache."),
};

/** The costs and tokens of several model calls. */
export const modelSpend = {
  total_cost_micros: count("The total cost in millionths of a US dollar, of calls with a price."),
  request_count: count("The number of model calls that reported their usage."),
  unpriced_request_count: count("The number of calls whose model had no price. They are not included in any sum."),
  ...tokenCounts,
};

/** A hundred years: the end of a longer duration could be a time that no date can express. */
export const MAX_DURATION_MS = 100 * 365 * 86_400_000;
