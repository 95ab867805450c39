// Wire shape of a turn's error (specification "Chat error", facts/chats 5.7).
import { type Static, Type as t } from "@sinclair/typebox";
import { oneOf } from "../one-of.ts";
import { named, namedObject } from "../shape-names.ts";

export const CHAT_ERROR_KINDS = [
  "auth",
  "config",
  "content_filter",
  "generic",
  "hook_denied",
  "hook_dispatch_failed",
  "missing_key",
  "overloaded",
  "provider_disabled",
  "rate_limit",
  "stream_silence_timeout",
  "timeout",
  "usage_limit",
] as const;
export type ChatErrorKind = (typeof CHAT_ERROR_KINDS)[number];

export const ChatError = namedObject("ChatError", {
  kind: named(
    "ChatErrorKind",
    oneOf(
      CHAT_ERROR_KINDS,
      "The cause of the error. `auth`: the provider rejected the API key. `config`: the model, its settings or the length of the chat. `content_filter`: the provider declined to answer. `hook_denied`, `hook_dispatch_failed`: a lifecycle hook denied the request or could not be reached. `missing_key`: the provider has no API key. `stream_silence_timeout`: the provider stopped sending. `usage_limit`: a budget, a spend limit or the quota at the provider is used up.",
    ),
  ),
  message: t.String({ description: "A sentence to display. Never contains the provider's own text." }),
  detail: t.Optional(t.String({ description: "The provider's own message." })),
  provider: t.Optional(
    t.String({ description: "The kind of the model's provider, such as `anthropic`; absent if unknown." }),
  ),
  retryable: t.Boolean({ description: "Whether a retry may succeed." }),
  status_code: t.Optional(t.Integer({ description: "The HTTP status that the provider returned, if it responded." })),
});
export type ChatError = Static<typeof ChatError>;
