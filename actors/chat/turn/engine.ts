// The interface of the engines that run chats' turns: Slipway's own loop over a model, or a coding agent in the workspace. runner.ts depends
// only on this interface.
import type { IsLeaving } from "#db/own-rows.ts";
import type { Recording } from "../background/recorder.ts";
import type { TurnStart } from "../effects.ts";
import type { NewMessage } from "../machine/decision.ts";
import type { TurnScope } from "./slot.ts";
import type { StreamBuffer } from "./stream-buffer.ts";

/** One turn, outside of the mailbox. Reports to the chat's actor. Ends when a report is stale or the turn is stopped. */
export interface RunningTurn {
  /** The history version that this turn continues from. */
  readonly history_version: number;
  /** The output of the current step. */
  readonly buffer: StreamBuffer | undefined;
  readonly recording: Recording | undefined;
  readonly isStopped: boolean;
  /** Resolves when the commands and the coding agent that were stopped with the turn have ended; undefined if none were running. */
  readonly whenEnded: Promise<unknown> | undefined;
  /** Runs the turn. Rejects only because of a bug. */
  run(): Promise<void>;
  /** Stops the turn. With `INTERRUPTED_REASON`, also stops the commands and sub-chats that it started. */
  stop(reason: Error): void;
  /** Returns the output since the last stored step as history rows. */
  listPartialMessages(now: number): NewMessage[];
}

export interface Engine {
  begin(scope: TurnScope, start: TurnStart): RunningTurn;
}

export interface Engines {
  /** Returns the engine for a coding agent, or for null, Slipway's own loop. */
  of(coding_agent: string | null): Engine;
  /** Returns the IDs of chats whose coding agents are running. */
  listChatsWithState(): readonly string[];
  /** Ends the coding agent of a chat that was deleted or may not continue. */
  forget(chat_id: string): void;
  /** Ends the coding agents of chats that move to another node. */
  release(isLeaving: IsLeaving): void;
}
