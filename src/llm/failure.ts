// A failed model call in the words callers see: the kind's own sentence about the provider, never the provider's text as the message
// (facts/chats 5.7).
import type { ChatError, ChatErrorKind } from "#schema/chat-error.ts";
import { ModelError } from "./model.ts";

const DETAIL_LIMIT = 500;

const MESSAGES: Readonly<Record<ChatErrorKind, (provider: string) => string>> = {
  auth: (provider) => `${provider} refused the credentials.`,
  config: (provider) => `${provider} cannot use this model or its settings.`,
  content_filter: (provider) => `${provider} declined to answer this.`,
  generic: (provider) => `${provider} failed unexpectedly.`,
  hook_denied: () => "A lifecycle hook denied this.",
  hook_dispatch_failed: () => "A lifecycle hook could not be reached.",
  missing_key: (provider) => `${provider} has no API key yet.`,
  overloaded: (provider) => `${provider} is overloaded.`,
  provider_disabled: (provider) => `${provider} is disabled.`,
  rate_limit: (provider) => `${provider} limits the rate of requests.`,
  stream_silence_timeout: (provider) => `${provider} stopped sending its answer.`,
  timeout: (provider) => `${provider} did not answer in time.`,
  usage_limit: (provider) => `The quota at ${provider} is used up.`,
};

/** Any thrown value as a chat error; unknown ones are `generic` and say nothing of their insides. */
export const chatErrorOf = (error: unknown, provider: string): ChatError => {
  if (!(error instanceof ModelError)) {
    return { kind: "generic", message: MESSAGES.generic(named(provider)), retryable: false };
  }
  const { kind, retryable, status_code } = error;
  const by = error.provider || provider;
  return {
    kind,
    message: MESSAGES[kind](named(error.display_name || by)),
    ...(error.message ? { detail: [...error.message].slice(0, DETAIL_LIMIT).join("") } : {}),
    ...(by ? { provider: by } : {}),
    retryable,
    ...(status_code ? { status_code } : {}),
  };
};

const named = (provider: string): string => (provider ? `The model provider ${provider}` : "The model provider");
