// Converts a failed model call to an error for callers: a fixed sentence for each kind about the provider, never the provider's text as the
// message (facts/chats 5.7).
import { toRfc3339 } from "#base/clock.ts";
import type { ChatError, ChatErrorKind } from "#schema/chats/chat-error.ts";
import type { FailureReason } from "./classify.ts";
import { ModelError } from "./model.ts";

const MAX_DETAIL_CHARS = 500;
/** If a provider requests a longer wait, the turn ends, so that no one waits unknowingly (rule MO-11). */
export const MAX_WAIT_MS = 300_000;

/** A sentence about a provider, whose name appears mid-sentence. */
type Sentence = (provider: string) => string;

const MESSAGES: Readonly<Record<ChatErrorKind, Sentence>> = {
  auth: (provider) => `${provider} refused the credentials.`,
  config: (provider) => `${provider} cannot use this model or its settings.`,
  content_filter: (provider) => `${provider} declined to answer this.`,
  generic: (provider) => `${provider} failed unexpectedly.`,
  hook_denied: () => "A lifecycle hook denied this.",
  hook_dispatch_failed: () => "A lifecycle hook could not be reached.",
  missing_key: (provider) => `${provider} has no API key yet.`,
  overloaded: (provider) => `${provider} is overloaded.`,
  provider_disabled: (provider) => `${provider} is disabled.`,
  rate_limit: (provider) => `The rate limit of ${provider} is exceeded.`,
  stream_silence_timeout: (provider) => `${provider} stopped sending its answer.`,
  timeout: (provider) => `${provider} did not respond in time.`,
  usage_limit: (provider) => `The quota at ${provider} is used up.`,
};

const REASONS: Readonly<Record<FailureReason, Sentence>> = {
  only_reasoning: (provider) =>
    `The model at ${provider} spent its whole output limit on thinking. Raise the limit or lower the reasoning effort.`,
  broke_off: (provider) => `The connection to ${provider} broke off before the answer was complete.`,
  empty: (provider) => `${provider} sent an empty answer, twice in a row.`,
  endless: (provider) => `The answer of ${provider} became longer than a message can be, and was ended.`,
  budget: () => "A budget of this chat is used up.",
  budget_held: () => "The remaining budget is reserved for other model calls. The chat retries when they are done.",
  gone: () => "The model of this chat has been removed. Choose another model for the next message.",
  model_disabled: (provider) =>
    `The model of this chat is disabled at ${provider}. Choose another model for the next message.`,
  owner_refused: () => "The owner of this chat may not use models at the moment.",
  spend_limit: () => "The spend limit of this chat's owner is reached.",
  too_long: (provider) =>
    `This chat is too long for its model at ${provider}, and could not be made short enough. Edit an earlier message, or start a new chat.`,
  web_page: (provider) =>
    `${provider} responded with a web page. Check its base URL, and that it can be reached without signing in.`,
  unknown_host: (provider) => `${provider} cannot be reached: its host name cannot be resolved.`,
  unreachable: (provider) => `${provider} cannot be reached: its address refuses connections.`,
};

/** The provider of the model, if the error does not name it. */
type Provider = { readonly provider: string; readonly provider_name?: string };

/** Converts any thrown value to a chat error; unknown ones are `generic` and expose no internals. `now` is in milliseconds since 1970. */
export const toChatError = (error: unknown, { provider, provider_name = "" }: Provider, now: number): ChatError => {
  if (!(error instanceof ModelError)) {
    return { kind: "generic", message: toSentence(MESSAGES.generic, provider_name || provider), retryable: false };
  }
  const { retryable, status_code, retry_after_ms } = error;
  const failedProvider = error.provider || provider;
  const isLongWait = retryable && retry_after_ms > MAX_WAIT_MS;
  const kind = isLongWait ? "rate_limit" : error.kind;
  const messageText = error.reason ? REASONS[error.reason] : MESSAGES[kind];
  const message = toSentence(
    isLongWait ? MESSAGES.rate_limit : messageText,
    error.display_name || provider_name || failedProvider,
  );
  return {
    kind,
    message: isLongWait ? `${message} It asks to retry after ${toRfc3339(now + retry_after_ms)}.` : message,
    ...(error.message ? { detail: [...error.message].slice(0, MAX_DETAIL_CHARS).join("") } : {}),
    ...(failedProvider ? { provider: failedProvider } : {}),
    retryable,
    ...(status_code ? { status_code } : {}),
  };
};

const toSentence = (sentence: Sentence, provider: string): string => {
  const text = sentence(provider ? `the model provider ${provider}` : "the model provider");
  return text.charAt(0).toUpperCase() + text.slice(1);
};
