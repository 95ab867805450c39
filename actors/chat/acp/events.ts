// What a coding agent does during a turn, in the order in which it did it: taken one by one by the turn.

import type { ChatTool } from "#src/acp/calls.ts";
import type { SessionUpdate, StopReason, ToolCallUpdate } from "#src/acp/connection.ts";
import type { ToolAnswer } from "#src/tools/run.ts";
import { Wakeup } from "#src/wire/index.ts";

/** A call that Slipway runs for the agent, by the tool's real name. */
export type OwnCall = ChatTool & { readonly tool_call_id: string };

/** A question that the agent waits with until it is answered. */
export type Asked = {
  readonly call: ToolCallUpdate;
  /** The agent writes this file through its client: it has no call of its own for it. */
  readonly isWrite: boolean;
  /** Slipway runs this for the agent: the tool, and its arguments, are known and not only what the agent says of them. */
  readonly own?: OwnCall;
  /** Undefined: the turn is over before anybody has answered. */
  answer(isGranted: boolean | undefined): void;
};

export type AgentEvent =
  | { readonly type: "update"; readonly update: SessionUpdate }
  | ({ readonly type: "asked" } & Asked)
  /** A file that the agent writes through its client has been written, or not. */
  | { readonly type: "written"; readonly tool_call_id: string; readonly error: string | undefined }
  /** A call that Slipway ran for the agent has its answer. */
  | { readonly type: "ran"; readonly tool_call_id: string; readonly answer: ToolAnswer }
  /** A terminal that calls may show has printed something. */
  | { readonly type: "printed"; readonly terminal_id: string; taken(): void }
  /** The gateway has refused a model call of the agent's: a budget is used up. */
  | { readonly type: "refused" }
  | { readonly type: "ended"; readonly stop: StopReason }
  /** `isGone`: the program has ended; otherwise it has refused the prompt. `excess`: says which limit a message of the program exceeded, if it was ended for that. */
  | { readonly type: "failed"; readonly reason: string; readonly isGone: boolean; readonly excess: string | undefined };

/** A program that writes faster than it is read is cut off. */
const MAX_WAITING = 100_000;

export class AgentEvents {
  #waiting: AgentEvent[] = [];
  readonly #news = new Wakeup();

  push(event: AgentEvent): void {
    if (this.#waiting.length >= MAX_WAITING) {
      if (event.type === "asked") event.answer(undefined);
      return;
    }
    this.#waiting.push(event);
    this.#news.ring();
  }

  /** The next event; undefined once the signal fires. */
  async next(signal: AbortSignal): Promise<AgentEvent | undefined> {
    for (;;) {
      if (signal.aborted) return undefined;
      const event = this.#waiting.shift();
      if (event) return event;
      let leave = (): void => {};
      const left = new Promise<void>((resolve) => {
        leave = resolve;
      });
      signal.addEventListener("abort", leave, { once: true });
      await Promise.race([this.#news.wait(), left]);
      signal.removeEventListener("abort", leave);
    }
  }

  /** Whether an event waits already. */
  get hasMore(): boolean {
    return this.#waiting.length > 0;
  }

  /** Takes all that waits. Questions among it are not put to anybody any more. */
  drain(): readonly AgentEvent[] {
    const all = this.#waiting;
    this.#waiting = [];
    for (const event of all) if (event.type === "asked") event.answer(undefined);
    return all;
  }
}
