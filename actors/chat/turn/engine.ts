// The interface of the engines that run a chat's turns: Slipway's own loop over a model, or a coding agent in the workspace. The runner
// depends only on this.
import type { IsLeaving } from "#db/own-rows.ts";
import type { Recording } from "../background/recorder.ts";
import type { TurnStart } from "../effects.ts";
import type { NewMessage } from "../machine/decision.ts";
import type { TurnScope } from "./slot.ts";
import type { StreamBuffer } from "./stream-buffer.ts";

/** One turn outside of the mailbox. Reports to the chat's actor. Ends when a report is stale or the turn is stopped. */
export interface RunningTurn {
  /** The history version that this turn continues from. */
  readonly history_version: number;
  /** The output of its current step. */
  readonly buffer: StreamBuffer | undefined;
  readonly recording: Recording | undefined;
  readonly isStopped: boolean;
  /** Resolves when everything that was stopped with the turn has ended; undefined if nothing was running. */
  readonly whenEnded: Promise<unknown> | undefined;
  /** Runs the turn. Rejects only because of a bug. */
  run(): Promise<void>;
  /** Stops the turn. With `INTERRUPTED_REASON`, also stops the commands and sub-chats that it started. */
  stop(reason: Error): void;
  /** Returns the output since the last step as history rows. `now` in milliseconds since 1970. */
  listPartialMessages(now: number): NewMessage[];
}

export interface Engine {
  begin(scope: TurnScope, start: TurnStart): RunningTurn;
}

export interface Engines {
  /** Returns the engine for a coding agent; null: Slipway's own loop. */
  of(coding_agent: string | null): Engine;
  /** Returns the chats for which the engines keep state between turns. */
  listChatsWithState(): readonly string[];
  /** Discards the state of a chat that was deleted or may not continue. */
  forget(chat_id: string): void;
  /** Discards the state of leaving chats. */
  release(isLeaving: IsLeaving): void;
}
