// What the end of a model's answer means: whether it is one at all, and how an answer goes on that has reached the model's output limit.
// Pure; used by turn.ts (rules MO-38, MO-39).
import type { MessagePart } from "#schema/chats/chat-part.ts";
import { ModelError, type ModelEvent } from "#src/llm/model.ts";
import type { NewMessage } from "../machine/decision.ts";

type Finish = Extract<ModelEvent, { type: "finish" }>["reason"];

/**
 * Failures in a row, among them empty answers and such as broke off after they had begun; continuations in a row of one answer, and of one
 * that its provider has paused.
 */
export type Tries = { failures: number; empty: number; broken: number; continued: number; resumed: number };

/** Model calls in one turn (facts/chats 5.3). */
export const STEPS = 1_200;

/** How often in a row one answer is continued. */
export const MAX_CONTINUATIONS = 3;

/** How often in a row a paused answer goes back to its provider. */
export const MAX_RESUMED = 10;

/** Calls that someone here has to answer. */
export const callsIn = (content: readonly MessagePart[]): MessagePart[] =>
  content.filter(({ type, provider_executed }) => type === "tool-call" && !provider_executed);

/** What is wrong with an answer that has ended like this; undefined when it can be taken. */
export const findProblem = (content: readonly MessagePart[], finish: Finish | undefined): ModelError | undefined => {
  if (finish === undefined) return new ModelError("timeout", "The answer ended early.", { reason: "broke_off" });
  if (finish === "paused" && content.length > 0) return undefined;
  if (content.some(({ type, text }) => type !== "reasoning" && (type !== "text" || text?.trim() !== "")))
    return undefined;
  if (finish === "content_filter") return content.length === 0 ? new ModelError("content_filter", "") : undefined;
  if (finish === "length") return new ModelError("config", "", { reason: "all_thought" });
  return new ModelError("generic", "", { reason: "empty", retryable: true });
};

/** An answer that had begun was lost on its way. */
export const hasBrokenOff = (failure: unknown, said: readonly MessagePart[]): boolean =>
  failure instanceof ModelError && failure.reason === "broke_off" && said.length > 0;

/** The answer broke off in its text: a call that has broken off is answered with an error, which lets the model go on on its own. */
export const isCutOff = (content: readonly MessagePart[], finish: Finish | undefined): boolean =>
  finish === "length" && callsIn(content).length === 0;

/** People are told where a provider has ended an answer that had begun. */
export const afterFilter = (): NewMessage[] => [row("assistant", "user", FILTERED)];

const FILTERED =
  "[The provider's content filter ended the answer here, so it is not complete. Say it in another way to go on.]";

/** Returns the notice that an answer may be incomplete. */
export const afterUnknownEnd = (): NewMessage[] => [row("assistant", "user", INCOMPLETE)];

const INCOMPLETE =
  "[The provider ended the answer here without saying that it is complete. Ask for the rest to let it go on.]";

/** What follows an answer that was cut off: people are told, and where it is continued the model is asked to. */
export const afterCut = (isContinued: boolean): NewMessage[] => [
  {
    ...row("assistant", "user", isContinued ? GOES_ON : STOPPED),
  },
  ...(isContinued ? [row("user", "model", CONTINUE)] : []),
];

const GOES_ON = "[The answer has reached the model's output limit. It is continued below.]";
const STOPPED =
  "[The answer has reached the model's output limit and is not complete. Ask for the rest to let it go on.]";
const CONTINUE =
  "Your last message was cut off at the limit of its length. Go on exactly where it stopped: repeat nothing and say nothing about the break.";

const row = (role: NewMessage["role"], visibility: NewMessage["visibility"], text: string): NewMessage => ({
  role,
  visibility,
  content: [{ type: "text", text }],
  created_by: null,
  model_config_id: null,
  usage: null,
});
