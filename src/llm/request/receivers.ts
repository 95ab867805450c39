// The rules of each kind of model server for requests, as data. Sources: the providers' public API references, and the error messages of
// their servers. messages.ts and tools.ts apply them to every request.
import type { SharedV4ProviderOptions } from "@ai-sdk/provider";
import type { ProviderKind } from "#schema/chats/model-provider.ts";

export type Receiver = {
  /** IDs of tool calls. A matching ID is sent unchanged; any other is replaced. */
  readonly callId: RegExp;
  /** Creates the replacement: `digest` is hexadecimal, `position` counts the calls of the request from 0. */
  readonly makeCallId: (call: { readonly digest: string; readonly position: number; readonly name: string }) => string;
  /** Valid names of tools, at most 64 characters. */
  readonly toolName: RegExp;
  /** Maximum number of tools in one request. */
  readonly maxTools: number;
  /** A user message may directly follow tool results. */
  readonly userAfterTool: boolean;
  /** Text parts of a message are joined into one, because chat templates expect a plain string. */
  readonly joinsText: boolean;
  /** True if a call that the server ran itself, or its result, is sent back with these options. */
  readonly keepsExecuted: (options: SharedV4ProviderOptions) => boolean;
  /** The server continues a paused response if the request ends with it. */
  readonly resumesPaused: boolean;
  /** An answer with signed reasoning must start with it. */
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

/** OpenAI chat completions: IDs of at most 40 characters, at most 128 tools. Compatible servers accept the same. */
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

/**
 * OpenAI responses: IDs of at most 64 characters, at most 128 tools. Calls that it ran itself are sent back only if it stores the
 * responses.
 */
const RESPONSES: Receiver = { ...CHAT, callId: /^[a-zA-Z0-9_-]{1,64}$/, joinsText: false };

/** Gemini: names begin with a letter or an underscore. */
const GOOGLE: Receiver = {
  ...RESPONSES,
  toolName: /^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/,
  keepsExecuted: ({ google }) => google?.serverToolCallId !== undefined,
};

/** Mistral: IDs of exactly nine letters and digits; an assistant message is required between results and the next user message. */
export const MISTRAL: Receiver = {
  ...CHAT,
  callId: /^[a-zA-Z0-9]{9}$/,
  makeCallId: ({ digest }) => digest.slice(0, 9),
  userAfterTool: false,
};

/** Kimi: its models were trained on IDs of this form and call tools less reliably with others. */
const KIMI: Receiver = {
  ...CHAT,
  callId: /^functions\.[a-zA-Z0-9_-]{1,64}:\d{1,6}$/,
  makeCallId: ({ name, position }) => `functions.${name}:${position}`,
};

/** Chat-completions servers that differ from OpenAI's, by the host of the base URL or the model's name. */
const VARIANTS: readonly { readonly pattern: RegExp; readonly receiver: Receiver }[] = [
  { pattern: /mistral|mixtral|ministral|devstral|magistral|codestral|pixtral/i, receiver: MISTRAL },
  { pattern: /\bkimi|moonshot/i, receiver: KIMI },
];

type Server = { readonly useResponses: boolean; readonly base_url: string; readonly model: string };

/** Returns the rules for this model's server. */
export const getReceiver = (kind: ProviderKind, { useResponses, base_url, model }: Server): Receiver => {
  if (kind === "anthropic") return ANTHROPIC;
  if (kind === "google") return GOOGLE;
  if (kind === "openai" && useResponses) return RESPONSES;
  const host = URL.canParse(base_url) ? new URL(base_url).hostname : "";
  return VARIANTS.find(({ pattern }) => pattern.test(host) || pattern.test(model))?.receiver ?? CHAT;
};
