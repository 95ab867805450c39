// Limits on the size of answers from a model's server. The providers' packages parse answers themselves, without any limit.
import type { Clock } from "#base/clock.ts";
import { type AnswerLimits, counted } from "#base/json/counted-fetch.ts";
import type { GuardedFetch } from "./fetch.ts";
import { ModelError } from "./model.ts";

/** The limits for an answer, and for each event of a stream. The largest real answers contain an image. */
export const ANSWER_LIMITS: AnswerLimits = {
  maxBytes: 32 * 1024 * 1024,
  fail: (problem) => new ModelError("config", `Its answer ${problem}`),
};

/** Maximum tool calls of one answer: a person must be able to answer all of them in one request, and each is work for the whole server. */
const MAX_CALLS = 512;

/** Throws ModelError if an answer has more calls than a chat can handle. */
export const requireFewCalls = (count: number): void => {
  if (count > MAX_CALLS)
    throw new ModelError("config", `Its answer has more than ${MAX_CALLS} tool calls.`, { reason: "endless" });
};

/** Returns a fetch whose answers fail before they are expensive to parse. */
export const countedFetch =
  (clock: Clock, fetch: GuardedFetch): GuardedFetch =>
  async (input, init) =>
    counted(clock, await fetch(input, init), ANSWER_LIMITS);
