// Repairs the deltas of calls in a chat-completions stream: servers omit the index, change its meaning in later deltas, or start without an
// ID. Packages join deltas by index, so that two calls would be merged, or one lost (rule MO-44). Pure, except for its own state; used by
// chat-chunks.ts.
import { isMembers, type Members } from "./normalize-stream.ts";

/** One instance per stream. */
export class CallDeltas {
  readonly #indexes = new Map<string, number>();
  readonly #knownIndexes = new Set<number>();
  #lastIndex: number | undefined;

  /** Repairs the deltas of one chunk in place. `answer_id` is the ID of the whole response. */
  repair(calls: readonly unknown[], answer_id: unknown): void {
    for (const call of calls) {
      if (!isMembers(call)) continue;
      if (isMembers(call.function)) repairFunction(call.function);
      const index = this.#findIndex(call);
      if (!this.#knownIndexes.has(index) && !hasId(call)) call.id = `call_${String(answer_id ?? "answer")}_${index}`;
      if (hasId(call)) this.#indexes.set(call.id, this.#indexes.get(call.id) ?? index);
      else delete call.id;
      this.#knownIndexes.add(index);
      this.#lastIndex = index;
      call.index = index;
    }
  }

  #findIndex(call: Members): number {
    const knownIndex = hasId(call) ? this.#indexes.get(call.id) : undefined;
    if (knownIndex !== undefined) return knownIndex;
    const givenIndex = typeof call.index === "number" ? call.index : undefined;
    const isOpen = givenIndex !== undefined && this.#knownIndexes.has(givenIndex);
    if (getName(call) === "" && this.#lastIndex !== undefined) return isOpen ? givenIndex : this.#lastIndex;
    // A new ID and name under the index of another call start another call.
    return givenIndex === undefined || (isOpen && hasId(call)) ? this.#nextIndex() : givenIndex;
  }

  #nextIndex(): number {
    return this.#knownIndexes.size === 0 ? 0 : Math.max(...this.#knownIndexes) + 1;
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
