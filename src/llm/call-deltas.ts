// The pieces of calls in a chat-completions stream: servers leave the index of a piece out, count it another way in later pieces, or begin
// without an id. Packages put pieces together by their index, so that two calls would become one, or one be lost (rule MO-44). Pure but for
// its own memory; used by chat-chunks.ts.
import { isMembers, type Members } from "./sound-stream.ts";

/** One for each stream. */
export class CallDeltas {
  readonly #indexes = new Map<string, number>();
  readonly #known = new Set<number>();
  #last: number | undefined;

  /** Puts the pieces of one chunk right, in place. `answer_id`: of the whole answer. */
  repair(calls: readonly unknown[], answer_id: unknown): void {
    for (const call of calls) {
      if (!isMembers(call)) continue;
      if (isMembers(call.function)) repairFunction(call.function);
      const index = this.#indexOf(call);
      if (!this.#known.has(index) && !hasId(call)) call.id = `call_${String(answer_id ?? "answer")}_${index}`;
      if (hasId(call)) this.#indexes.set(call.id, this.#indexes.get(call.id) ?? index);
      else delete call.id;
      this.#known.add(index);
      this.#last = index;
      call.index = index;
    }
  }

  #indexOf(call: Members): number {
    const known = hasId(call) ? this.#indexes.get(call.id) : undefined;
    if (known !== undefined) return known;
    const given = typeof call.index === "number" ? call.index : undefined;
    const isOpen = given !== undefined && this.#known.has(given);
    if (nameIn(call) === "" && this.#last !== undefined) return isOpen ? given : this.#last;
    // A new id and a name under the index of another call are another call.
    return given === undefined || (isOpen && hasId(call)) ? this.#next() : given;
  }

  #next(): number {
    return this.#known.size === 0 ? 0 : Math.max(...this.#known) + 1;
  }
}

const hasId = (call: Members): call is Members & { id: string } => typeof call.id === "string" && call.id !== "";

const nameIn = ({ function: asked }: Members): string =>
  isMembers(asked) && typeof asked.name === "string" ? asked.name : "";

const repairFunction = (asked: Members): void => {
  if (isMembers(asked.arguments)) asked.arguments = JSON.stringify(asked.arguments);
  if (asked.arguments === null) asked.arguments = "";
  if (asked.name === null || asked.name === "") delete asked.name;
};
