// Decides whether an unexplained rejection may be due to the length of the prompt. Pure; used by turn.ts (rule CM-12).
import { ModelError } from "#src/llm/model.ts";
import { type HistoryRow, measureFullness } from "../prompt/compact.ts";

/** Percent of the context from which the prompt may have been too long: token counts are estimates, and exclude instructions and tools. */
const NEAR = 70;
/** Characters per token in code and tool output. */
const PER_TOKEN = 3;

/** Returns whether a request was rejected without a known reason and its history is near the model's context limit. */
export const mayBeTooLong = (failure: unknown, history: readonly HistoryRow[], context_limit: number): boolean => {
  if (!(failure instanceof ModelError) || failure.reason !== undefined || failure.retryable) return false;
  const { kind, status_code = 0 } = failure;
  const isUnclear = (kind === "generic" || kind === "config") && [400, 413, 422].includes(status_code);
  if (!isUnclear || context_limit <= 0) return false;
  const characters = history.reduce((sum, { content }) => sum + JSON.stringify(content).length, 0);
  const tokens = Math.max(characters / PER_TOKEN, measureFullness(history, context_limit).tokens);
  return tokens >= (context_limit * NEAR) / 100;
};
