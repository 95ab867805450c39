// Interprets the end of a model's answer: whether it is valid, and how to continue one that reached the model's output limit. Pure; used by
// turn.ts (rules MO-38, MO-39).
import type { MessagePart } from "#schema/chats/chat-part.ts";
import { ModelError, type ModelEvent } from "#src/llm/model.ts";
import type { NewMessage } from "../machine/decision.ts";

type Finish = Extract<ModelEvent, { type: "finish" }>["reason"];

/**
 * Counters of a turn, each of consecutive events: failures, and among them empty and broken-off answers; continuations after the output
 * limit; resumptions of an answer that the provider paused.
 */
export type Tries = { failures: number; empty: number; broken: number; continued: number; resumed: number };

/** Maximum model calls in one turn (facts/chats 5.3). */
export const STEPS = 1_200;

/** Maximum consecutive continuations of one answer. */
export const MAX_CONTINUATIONS = 3;

/** Maximum consecutive resumptions of a paused answer. */
export const MAX_RESUMPTIONS = 10;

/** Returns the calls that the server or client has to answer. */
export const selectCalls = (content: readonly MessagePart[]): MessagePart[] =>
  content.filter(({ type, provider_executed }) => type === "tool-call" && !provider_executed);

/** Returns why an answer with this finish reason is invalid, or undefined if it is valid. */
export const findProblem = (content: readonly MessagePart[], finish: Finish | undefined): ModelError | undefined => {
  if (finish === undefined) return new ModelError("timeout", "The answer ended early.", { reason: "broke_off" });
  if (finish === "paused" && content.length > 0) return undefined;
  if (content.some(({ type, text }) => type !== "reasoning" && (type !== "text" || text?.trim() !== "")))
    return undefined;
  if (finish === "content_filter") return content.length === 0 ? new ModelError("content_filter", "") : undefined;
  if (finish === "length") return new ModelError("config", "", { reason: "only_reasoning" });
  return new ModelError("generic", "", { reason: "empty", retryable: true });
};

/** Returns whether an answer was lost after it had begun. */
export const hasBrokenOff = (failure: unknown, content: readonly MessagePart[]): boolean =>
  failure instanceof ModelError && failure.reason === "broke_off" && content.length > 0;

/**
 * Returns whether the answer was cut off in its text. A cut-off call gets an error as its result instead, so the model continues without
 * help.
 */
export const isCutOff = (content: readonly MessagePart[], finish: Finish | undefined): boolean =>
  finish === "length" && selectCalls(content).length === 0;

/** Returns the notice for people that a provider's filter ended the answer. */
export const toFilterNotice = (): NewMessage[] => [toRow("assistant", "user", FILTERED_NOTICE)];

const FILTERED_NOTICE = "[The provider's content filter cut off this answer. Rephrase your message to continue.]";

/** Returns the notice that an answer may be incomplete. */
export const toIncompleteNotice = (): NewMessage[] => [toRow("assistant", "user", INCOMPLETE_NOTICE)];

const INCOMPLETE_NOTICE =
  "[The provider ended this answer without marking it as complete. Ask for the rest if it looks cut off.]";

/** Returns the rows after a cut-off answer: a notice for people, and a request to continue if it is continued. */
export const toCutOffRows = (isContinued: boolean): NewMessage[] => [
  {
    ...toRow("assistant", "user", isContinued ? CONTINUED_NOTICE : STOPPED),
  },
  ...(isContinued ? [toRow("user", "model", CONTINUE_PROMPT)] : []),
];

const CONTINUED_NOTICE = "[The answer has reached the model's output limit. It is continued below.]";
const STOPPED = "[This answer reached the model's output limit and is incomplete. Ask the model to continue.]";
const CONTINUE_PROMPT =
  "Your last message was cut off at the limit of its length. Go on exactly where it stopped: repeat nothing and say nothing about the break.";

const toRow = (role: NewMessage["role"], visibility: NewMessage["visibility"], text: string): NewMessage => ({
  role,
  visibility,
  content: [{ type: "text", text }],
  created_by: null,
  model_config_id: null,
  usage: null,
});
