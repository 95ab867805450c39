// Repairs the deltas of calls in a chat-completions stream: servers omit the index, change its meaning in later deltas, or start without an
// ID. Packages join deltas by index, so that two calls would be merged, or one lost (rule MO-44). Pure, except for its own state; used by
// chat-chunks.ts.
import { isMembers, type Members } from "./normalize-stream.ts";

/** One instance per stream. */
export class CallDeltas {
  readonly #indexes = new Map<string, number>();
  readonly #known = new Set<number>();
  #last: number | undefined;

  /** Repairs the deltas of one chunk in place. `answer_id` is the ID of the whole response. */
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
    // A new ID and name under the index of another call start another call.
    return given === undefined || (isOpen && hasId(call)) ? this.#nextIndex() : given;
  }

  #nextIndex(): number {
    return this.#known.size === 0 ? 0 : Math.max(...this.#known) + 1;
  }
}

const hasId = (call: Members): call is Members & { id: string } => typeof call.id === "string" && call.id !== "";

const nameIn = ({ function: requested }: Members): string =>
  isMembers(requested) && typeof requested.name === "string" ? requested.name : "";

const repairFunction = (requested: Members): void => {
  if (isMembers(requested.arguments)) requested.arguments = JSON.stringify(requested.arguments);
  if (requested.arguments === null) requested.arguments = "";
  if (requested.name === null || requested.name === "") delete requested.name;
};
