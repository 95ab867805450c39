// What each kind of model server accepts in a request, as data. Sources: the providers' public API references, and the words with which
// their servers refuse a request. messages.ts and tools.ts put every request into this form.
import type { SharedV4ProviderOptions } from "@ai-sdk/provider";
import type { ProviderKind } from "#schema/chats/model-provider.ts";

export type Receiver = {
  /** Ids of tool calls. One that matches is sent as it came; any other is replaced. */
  readonly callId: RegExp;
  /** Makes the replacement: `digest` is hexadecimal, `position` counts the calls of the request from 0. */
  readonly makeCallId: (call: { readonly digest: string; readonly position: number; readonly name: string }) => string;
  /** Names of tools, at most 64 characters. */
  readonly toolName: RegExp;
  /** Tools in one request. */
  readonly maxTools: number;
  /** Whether a person's message may follow the results of tools directly. */
  readonly userAfterTool: boolean;
  /** Whether the text parts of a message are joined into one, because chat templates expect a plain string. */
  readonly joinsText: boolean;
  /** Whether a call that the server has run itself, or its result, goes back to it with these options. */
  readonly keepsExecuted: (options: SharedV4ProviderOptions) => boolean;
  /** Whether the server continues an answer that it has paused, when the request ends with that answer. */
  readonly resumesPaused: boolean;
  /** Whether an answer with signed thoughts must begin with them. */
  readonly thoughtsFirst: boolean;
};

const NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const makeCallId = ({ digest }: { readonly digest: string }): string => `call_${digest.slice(0, 24)}`;

/** Anthropic Messages: `^[a-zA-Z0-9_-]+$` for ids. The number of tools is not limited. */
const ANTHROPIC: Receiver = {
  callId: /^[a-zA-Z0-9_-]{1,64}$/,
  makeCallId: ({ digest }) => `toolu_${digest.slice(0, 24)}`,
  toolName: NAME,
  maxTools: Number.POSITIVE_INFINITY,
  userAfterTool: true,
  joinsText: false,
  keepsExecuted: () => true,
  resumesPaused: true,
  thoughtsFirst: true,
};

/** OpenAI chat completions: ids of at most 40 characters, at most 128 tools. Servers behind other names take the same. */
const CHAT: Receiver = {
  callId: /^[a-zA-Z0-9_-]{1,40}$/,
  makeCallId: makeCallId,
  toolName: NAME,
  maxTools: 128,
  userAfterTool: true,
  joinsText: true,
  keepsExecuted: () => false,
  resumesPaused: false,
  thoughtsFirst: false,
};

/** OpenAI responses: ids of at most 64 characters, at most 128 tools. Calls it has run itself go back only where it stores the answers. */
const RESPONSES: Receiver = { ...CHAT, callId: /^[a-zA-Z0-9_-]{1,64}$/, joinsText: false };

/** Gemini: names begin with a letter or an underscore. */
const GOOGLE: Receiver = {
  ...RESPONSES,
  toolName: /^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/,
  keepsExecuted: ({ google }) => google?.serverToolCallId !== undefined,
};

/** Mistral: ids of exactly nine letters and digits; an answer stands between results and the next message of a person. */
export const MISTRAL: Receiver = {
  ...CHAT,
  callId: /^[a-zA-Z0-9]{9}$/,
  makeCallId: ({ digest }) => digest.slice(0, 9),
  userAfterTool: false,
};

/** Kimi: its models were trained on ids of this form and call tools worse with others. */
const KIMI: Receiver = {
  ...CHAT,
  callId: /^functions\.[a-zA-Z0-9_-]{1,64}:\d{1,6}$/,
  makeCallId: ({ name, position }) => `functions.${name}:${position}`,
};

/** Servers of the chat-completions protocol that differ from OpenAI's, by the host of the base URL or the name of the model. */
const VARIANTS: readonly { readonly of: RegExp; readonly receiver: Receiver }[] = [
  { of: /mistral|mixtral|ministral|devstral|magistral|codestral|pixtral/i, receiver: MISTRAL },
  { of: /\bkimi|moonshot/i, receiver: KIMI },
];

type Server = { readonly useResponses: boolean; readonly base_url: string; readonly model: string };

/** Returns what the server of this model accepts. */
export const getReceiver = (kind: ProviderKind, { useResponses, base_url, model }: Server): Receiver => {
  if (kind === "anthropic") return ANTHROPIC;
  if (kind === "google") return GOOGLE;
  if (kind === "openai" && useResponses) return RESPONSES;
  const host = URL.canParse(base_url) ? new URL(base_url).hostname : "";
  return VARIANTS.find(({ of }) => of.test(host) || of.test(model))?.receiver ?? CHAT;
};
