// The events of a coding agent during a turn, queued in order for the turn to take one by one.

import type { ChatTool } from "#src/acp/calls.ts";
import type { SessionUpdate, StopReason, ToolCallUpdate } from "#src/acp/connection.ts";
import type { ToolAnswer } from "#src/tools/run.ts";
import { Wakeup } from "#src/wire/index.ts";

/** A call that Slipway runs for the agent, under the tool's real name. */
export type ServerCall = ChatTool & { readonly tool_call_id: string };

/** A question of the agent, which waits for the answer. */
export type AgentQuestion = {
  readonly call: ToolCallUpdate;
  /** The agent asks Slipway, its ACP client, to write this file; there is no tool call. */
  readonly isWrite: boolean;
  /** Set when Slipway runs the call, so that the tool and arguments are known rather than described by the agent. */
  readonly own?: ServerCall;
  /** `undefined`: the turn ended before an answer. */
  answer(isGranted: boolean | undefined): void;
};

export type AgentEvent =
  | { readonly type: "update"; readonly update: SessionUpdate }
  | ({ readonly type: "asked" } & AgentQuestion)
  /** The agent's write of a file through its client succeeded or failed. */
  | { readonly type: "written"; readonly tool_call_id: string; readonly error: string | undefined }
  /** A call that Slipway ran for the agent has finished. */
  | { readonly type: "ran"; readonly tool_call_id: string; readonly answer: ToolAnswer }
  /** A terminal that calls may show has printed output. The reader of the output calls `onHandled`, so that the next output is reported. */
  | { readonly type: "printed"; readonly terminal_id: string; onHandled(): void }
  /** The gateway rejected a model call of the agent because a budget is used up. */
  | { readonly type: "refused" }
  | { readonly type: "ended"; readonly stop: StopReason }
  /**
   * `isGone`: the program has ended; otherwise it has refused the prompt. `limit_exceeded`: set if Slipway ended the program because a
   * message exceeded a limit; says which.
   */
  | {
      readonly type: "failed";
      readonly reason: string;
      readonly isGone: boolean;
      readonly limit_exceeded: string | undefined;
    };

/** Maximum waiting events and their characters. Further events of a program that writes faster than it is read are dropped and its questions canceled. */
const MAX_WAITING = 100_000;
const MAX_CHARACTERS = 32 * 1024 * 1024;

export class AgentEvents {
  #waiting: AgentEvent[] = [];
  /** Characters of the waiting events. */
  #characters = 0;
  readonly #wakeup = new Wakeup();

  push(event: AgentEvent): void {
    const characters = countCharacters(event);
    const exceedsLimit = characters > 0 && this.#characters + characters > MAX_CHARACTERS;
    if (exceedsLimit || this.#waiting.length >= MAX_WAITING) {
      if (event.type === "asked") event.answer(undefined);
      return;
    }
    this.#characters += characters;
    this.#waiting.push(event);
    this.#wakeup.wake();
  }

  /** Returns the next event, or undefined once the signal fires. */
  async next(signal: AbortSignal): Promise<AgentEvent | undefined> {
    for (;;) {
      if (signal.aborted) return undefined;
      const event = this.#waiting.shift();
      if (event) {
        this.#characters -= countCharacters(event);
        return event;
      }
      let onAbort = (): void => {};
      const aborted = new Promise<void>((resolve) => {
        onAbort = resolve;
      });
      signal.addEventListener("abort", onAbort, { once: true });
      await Promise.race([this.#wakeup.wait(), aborted]);
      signal.removeEventListener("abort", onAbort);
    }
  }

  /** Returns whether an event is already waiting. */
  get hasMore(): boolean {
    return this.#waiting.length > 0;
  }

  /** Takes all waiting events, and answers their questions as canceled. */
  drain(): readonly AgentEvent[] {
    const all = this.#waiting;
    this.#waiting = [];
    this.#characters = 0;
    for (const event of all) if (event.type === "asked") event.answer(undefined);
    return all;
  }
}

/** Returns the characters of the texts that make an event large. */
const countCharacters = (event: AgentEvent): number => {
  if (event.type !== "update" || !("content" in event.update)) return 0;
  const { content } = event.update;
  const all = Array.isArray(content) ? content : [content];
  return all.reduce((sum, one) => {
    if (one?.type === "diff") return sum + one.newText.length + (one.oldText?.length ?? 0);
    const block = one?.type === "content" ? one.content : one;
    return block?.type === "text" ? sum + block.text.length : sum;
  }, 0);
};
