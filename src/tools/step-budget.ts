// Limits the results of one step together: a model may make hundreds of calls in one answer, and every result is held, stored and sent to
// the model together. Pure.
import { truncateResult } from "./cut.ts";
import { computeResultLimit, type ToolAnswer } from "./run.ts";

/** How many results of full size fit into one step. Eight exceed the context of every model. */
const FULL_RESULTS = 8;
/** A result that no longer fits keeps this many bytes, so that the model learns how its call ended. */
const MIN_RESULT_BYTES = 2_048;

const encoder = new TextEncoder();

export class StepBudget {
  readonly #limit: number;
  #remainingBytes: number;

  /** `context_limit`: the model's context in tokens; 0 if unknown. */
  constructor(context_limit: number) {
    this.#limit = FULL_RESULTS * computeResultLimit(context_limit);
    this.#remainingBytes = this.#limit;
  }

  /** Returns why no further call of the step runs, as a message for the model; undefined while calls may run. */
  get refusal(): string | undefined {
    return this.#remainingBytes > 0
      ? undefined
      : `Not run: the results of this answer's other calls already take up the ${this.#limit} bytes that all of them share. Call it again in your next answer.`;
  }

  /** Returns the answer, shortened to the remaining bytes, and subtracts its size from them. */
  fit(answer: ToolAnswer): ToolAnswer {
    const result = truncateResult(answer.result, Math.max(this.#remainingBytes, MIN_RESULT_BYTES));
    this.#remainingBytes -= encoder.encode(JSON.stringify(result)).byteLength;
    return { result, is_error: answer.is_error };
  }
}
