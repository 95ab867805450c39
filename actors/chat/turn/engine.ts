// What does the turns of a chat: Slipway's own loop over a model, or a coding agent in the workspace. The runner knows this interface alone.
import type { Recording } from "../background/recorder.ts";
import type { Begun } from "../effects.ts";
import type { NewMessage } from "../machine/decision.ts";
import type { TurnOf } from "./slot.ts";
import type { StreamBuffer } from "./stream-buffer.ts";

/** One turn outside of the mailbox. It reports to the chat's actor and ends as soon as a report is stale or it is stopped. */
export interface RunningTurn {
  /** The history this turn goes on from. */
  readonly history_version: number;
  /** What it has said of its present step. */
  readonly buffer: StreamBuffer | undefined;
  readonly recording: Recording | undefined;
  readonly isStopped: boolean;
  /** Resolves when nothing runs any more that was stopped with it; undefined where nothing ran. */
  readonly commands: Promise<unknown> | undefined;
  /** Never rejects unless something of ours is broken. */
  run(): Promise<void>;
  /** Ends it. `INTERRUPTED`: what it has started ends, too. */
  stop(reason: Error): void;
  /** What was said since the last step, as history. `now` in milliseconds since 1970. */
  partial(now: number): NewMessage[];
}

export interface Engine {
  begin(of: TurnOf, begun: Begun): RunningTurn;
}

export interface Engines {
  /** Returns the engine of a chat by the coding agent that it is led with; null: Slipway's own loop. */
  of(coding_agent: string | null): Engine;
  /** The chats that they keep something for between turns. */
  kept(): readonly string[];
  /** Ends what they keep for a chat that is no more, or may not go on. */
  forget(chat_id: string): void;
  /** Ends what they keep between the turns of chats of these parts. */
  leave(isLeaving: (part: number) => boolean): void;
}
