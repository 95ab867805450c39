// Repairs the deltas of calls in a chat-completions stream: servers omit the index, change its meaning in later deltas, or start without an
// ID. Packages join deltas by index, so that two calls would be merged, or one lost (rule MO-44). Pure, except for its own state; used by
// chat-chunks.ts.
import { requireFewCalls } from "./answer-limits.ts";
import { isMembers, type Members } from "./normalize-stream.ts";

/** One instance per stream. */
export class CallDeltas {
  /** Our index of each call, by its ID and by the index that the server gave it: servers give any number. */
  readonly #byId = new Map<string, number>();
  readonly #byIndex = new Map<number, number>();
  #count = 0;
  #lastIndex: number | undefined;

  /** Repairs the deltas of one chunk in place. `answer_id` is the ID of the whole response. Throws ModelError if it has too many calls. */
  repair(calls: readonly unknown[], answer_id: unknown): void {
    for (const call of calls) {
      if (!isMembers(call)) continue;
      if (isMembers(call.function)) repairFunction(call.function);
      const knownIndex = this.#findIndex(call);
      const index = knownIndex ?? this.#addCall(call);
      if (knownIndex === undefined) {
        const id = hasId(call) ? call.id : `call_${String(answer_id ?? "answer")}_${index}`;
        call.id = id;
        this.#byId.set(id, index);
      } else if (!hasId(call) || !this.#byId.has(call.id)) delete call.id;
      this.#lastIndex = index;
      call.index = index;
    }
  }

  /** Returns our index of the call that the delta continues; undefined if it starts one. */
  #findIndex(call: Members): number | undefined {
    const knownIndex = hasId(call) ? this.#byId.get(call.id) : undefined;
    if (knownIndex !== undefined) return knownIndex;
    const openIndex = typeof call.index === "number" ? this.#byIndex.get(call.index) : undefined;
    if (getName(call) === "" && this.#lastIndex !== undefined) return openIndex ?? this.#lastIndex;
    // A new ID and name under the index of another call start another call.
    return hasId(call) ? undefined : openIndex;
  }

  #addCall({ index }: Members): number {
    this.#count += 1;
    requireFewCalls(this.#count);
    const ownIndex = this.#count - 1;
    if (typeof index === "number" && !this.#byIndex.has(index)) this.#byIndex.set(index, ownIndex);
    return ownIndex;
  }
}

const hasId = (call: Members): call is Members & { id: string } => typeof call.id === "string" && call.id !== "";

const getName = ({ function: calledFunction }: Members): string =>
  isMembers(calledFunction) && typeof calledFunction.name === "string" ? calledFunction.name : "";

const repairFunction = (calledFunction: Members): void => {
  if (isMembers(calledFunction.arguments)) calledFunction.arguments = JSON.stringify(calledFunction.arguments);
  if (calledFunction.arguments === null) calledFunction.arguments = "";
  if (calledFunction.name === null || calledFunction.name === "") delete calledFunction.name;
};
