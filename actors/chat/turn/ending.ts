// Interprets the end of a model's answer: whether the answer is valid, and whether and how the model continues it (rules MO-38, MO-39).
// Pure.
import type { MessagePart } from "#schema/chats/chat-part.ts";
import { ModelError, type ModelEvent } from "#src/llm/model.ts";
import type { NewMessage, Usage } from "../machine/decision.ts";

type Finish = Extract<ModelEvent, { type: "finish" }>["reason"];

/** How many model calls in a row have had each outcome. */
export type Tries = {
  failures: number;
  /** Failures because the answer was empty. */
  empty: number;
  /** Failures because the answer broke off. */
  broken: number;
  /** Answers that the model was asked to continue after its output limit. */
  continued: number;
  /** Answers that were sent back after the provider paused them. */
  resumed: number;
};

/** Maximum model calls in one turn (facts/chats 5.3). */
export const MAX_STEPS = 1_200;
export const MAX_CONTINUATIONS = 3;
export const MAX_RESUMPTIONS = 10;

/** Returns the calls that the server or client has to answer. */
export const selectCalls = (content: readonly MessagePart[]): MessagePart[] =>
  content.filter(({ type, provider_executed }) => type === "tool-call" && !provider_executed);

/** Returns why an answer with this finish reason is invalid, or undefined if it is valid. */
export const findProblem = (content: readonly MessagePart[], finish: Finish | undefined): ModelError | undefined => {
  if (finish === undefined) return new ModelError("timeout", "The answer ended early.", { reason: "broke_off" });
  if (finish === "paused" && content.length > 0) return undefined;
  const isContent = ({ type, text }: MessagePart): boolean =>
    type !== "reasoning" && (type !== "text" || text?.trim() !== "");
  if (content.some(isContent)) return undefined;
  if (finish === "content_filter") return content.length === 0 ? new ModelError("content_filter", "") : undefined;
  if (finish === "length") return new ModelError("config", "", { reason: "only_reasoning" });
  return new ModelError("generic", "", { reason: "empty", retryable: true });
};

/** Returns whether the connection was lost in the middle of an answer. */
export const hasBrokenOff = (failure: unknown, content: readonly MessagePart[]): boolean =>
  failure instanceof ModelError && failure.reason === "broke_off" && content.length > 0;

/** Returns whether the output limit cut off the answer's text. A cut-off call gets an error as its result, so the model continues anyway. */
export const isCutOff = (content: readonly MessagePart[], finish: Finish | undefined): boolean =>
  finish === "length" && selectCalls(content).length === 0;

export const FILTERED_NOTICE =
  "[The provider's content filter cut off this answer. Rephrase your message to continue.]";
export const INCOMPLETE_NOTICE =
  "[The provider ended this answer without marking it as complete. Ask for the rest if it looks cut off.]";
const CONTINUED_NOTICE = "[The answer has reached the model's output limit. It is continued below.]";
const CUT_OFF_NOTICE = "[This answer reached the model's output limit and is incomplete. Ask the model to continue.]";
const CONTINUE_PROMPT =
  "Your last message was cut off at the limit of its length. Go on exactly where it stopped: repeat nothing and say nothing about the break.";

/** Returns a notice that only people see. */
export const toNotice = (text: string): NewMessage => ({
  ...toAssistantMessage([{ type: "text", text }], null, null),
  visibility: "user",
});

/** Returns the rows after a cut-off answer: a notice for people, and if the answer is continued, a request to the model. */
export const toCutOffRows = (isContinued: boolean): NewMessage[] => {
  if (!isContinued) return [toNotice(CUT_OFF_NOTICE)];
  return [toNotice(CONTINUED_NOTICE), { ...toNotice(CONTINUE_PROMPT), role: "user", visibility: "model" }];
};

export const toAssistantMessage = (
  content: readonly MessagePart[],
  usage: Usage | null,
  model_config_id: string | null,
): NewMessage => ({
  role: "assistant",
  visibility: "both",
  content,
  created_by: null,
  model_config_id,
  usage,
});
