// The events of a coding agent, queued until the chat's turn takes them one by one.
import type { ChatTool } from "#src/acp/calls.ts";
import type { SessionUpdate, StopReason, ToolCallUpdate } from "#src/acp/connection.ts";
import type { ToolAnswer } from "#src/tools/run.ts";
import { Wakeup } from "#src/wire/index.ts";

/** A call that Slipway runs for the agent, under the tool's real name. */
export type ServerCall = ChatTool & { readonly tool_call_id: string };

/** A request for permission. The agent waits for the answer. */
export type AgentQuestion = {
  readonly call: ToolCallUpdate;
  /** The agent asks Slipway, its ACP client, to write a file. `call` only describes this request to people. */
  readonly isWrite: boolean;
  /** Set if Slipway runs the call. Its tool and arguments are exact, whereas `call` is the agent's description. */
  readonly serverCall?: ServerCall;
  /** `isGranted` is undefined if the turn ended before an answer. */
  answer(isGranted: boolean | undefined): void;
};

export type AgentEvent =
  | { readonly type: "update"; readonly update: SessionUpdate }
  | ({ readonly type: "asked" } & AgentQuestion)
  /** Slipway has written a file for the agent, or failed to. */
  | { readonly type: "written"; readonly tool_call_id: string; readonly error: string | undefined }
  /** A call that Slipway ran for the agent has finished. */
  | { readonly type: "ran"; readonly tool_call_id: string; readonly answer: ToolAnswer }
  /** A terminal has printed output. Its next output is reported only after a call of `onHandled`. */
  | { readonly type: "printed"; readonly terminal_id: string; onHandled(): void }
  /** The gateway rejected a model call of the agent because a budget is used up. */
  | { readonly type: "refused" }
  | { readonly type: "ended"; readonly stop: StopReason }
  /**
   * `isGone`: the program has ended; otherwise the agent has rejected the prompt. `limit_exceeded`: the limit of a message because of which
   * Slipway ended the program.
   */
  | {
      readonly type: "failed";
      readonly reason: string;
      readonly isGone: boolean;
      readonly limit_exceeded: string | undefined;
    };

/** Maximum waiting events and their characters. Further events are dropped, and dropped questions are answered as canceled. */
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

  /** Returns the next event, or undefined once the signal aborts. */
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

  /** Takes all waiting events, and answers their questions as canceled. */
  drain(): readonly AgentEvent[] {
    const all = this.#waiting;
    this.#waiting = [];
    this.#characters = 0;
    for (const event of all) if (event.type === "asked") event.answer(undefined);
    return all;
  }
}

/** Counts texts and diffs, which make up nearly all of a large event. */
const countCharacters = (event: AgentEvent): number => {
  if (event.type !== "update" || !("content" in event.update)) return 0;
  const { content } = event.update;
  const items = Array.isArray(content) ? content : [content];
  return items.reduce((sum, item) => {
    if (item?.type === "diff") return sum + item.newText.length + (item.oldText?.length ?? 0);
    const block = item?.type === "content" ? item.content : item;
    return block?.type === "text" ? sum + block.text.length : sum;
  }, 0);
};
