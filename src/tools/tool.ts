// The definition of a tool: a name, a description for the model, its arguments, and how it runs. Tools access the workspace only through
// `ToolAgent`, independently of connections and tables. They run outside of every mailbox.

import type { Static, TSchema } from "@sinclair/typebox";
import type { Clock } from "#base/clock.ts";
import type { AnswerMemory } from "#base/system/answer-memory.ts";
import type { SecretMask } from "./mask.ts";
import type { ToolResult } from "./result.ts";
import type { ToolServices } from "./services.ts";
import type { Skills } from "./skills/skills.ts";
import type { Live, Subagents } from "./subagents/agents.ts";

/** A request to the daemon in the workspace. */
export type AgentCall = {
  readonly method: "GET" | "POST";
  /** Path and query below the daemon's `/api/v0`. */
  readonly path: string;
  readonly json?: unknown;
  readonly body?: Uint8Array;
  /** Without it, the request is completed whatever happens to the turn. */
  readonly signal?: AbortSignal;
  /** The request is idempotent, so it is retried while the agent is unreachable. */
  readonly patient?: boolean;
  /** Timeout of a request that may take longer than others, in milliseconds. */
  readonly answer_ms?: number;
  /** The request ends something that the chat has started, so it is sent even if the chat's owner has lost access to the workspace. */
  readonly ends?: boolean;
};

export interface ToolAgent {
  /** Returns the JSON response. Throws `ToolError` with a message for the model, also if the workspace is unreachable. */
  call<T>(call: AgentCall): Promise<T>;
  /** Returns the bytes of a GET of this path; throws like `call`, also for more than `most`. */
  bytes(path: string, most: number, signal: AbortSignal): Promise<Uint8Array>;
}

export type ToolContext = Live & {
  readonly clock: Clock;
  readonly agent: ToolAgent;
  /** The agent that the call names; absent for the workspace's first one. */
  readonly agent_name?: string | undefined;
  /** Returns the folder of the workspace's first agent, if known. */
  readonly loadFolder?: () => Promise<string | undefined>;
  readonly services: ToolServices;
  readonly agents: Subagents;
  readonly skills: Skills;
  /** Waits before a large answer is read. */
  readonly memory: AnswerMemory;
  /** A UUID that stays the same when this call is run again, even after a crash. */
  readonly run_id: string;
  /** This call may have run before: the server has restarted since. */
  readonly again: boolean;
  /** The model's context limit in tokens; 0 if unknown. */
  readonly context_limit: number;
  /** If set, programs may write only these files. */
  readonly writable_only?: readonly string[];
  /** Masks secrets. Applied to every result; tools must apply it themselves before they shorten or stream text. */
  readonly mask: SecretMask;
};

export interface Tool<S extends TSchema = TSchema> {
  readonly name: string;
  readonly description: string;
  readonly input_schema: S;
  /** A successful result ends the turn, so that the user replies next (rule PM-4). */
  readonly ends_turn?: true;
  /** It changes nothing outside of the chat, so it runs without approval in every permission mode (rule PE-11). */
  readonly changes_nothing?: true;
  /** It changes no file of the workspace, so it need not wait until they are kept (rule UN-1). */
  readonly only_reads?: true;
  /** Its result has `image`, a file of the chat that is shown to models (rule DT-5). */
  readonly gives_image?: true;
  /**
   * Returns the result. Throws `ToolError` for errors that the model can fix. When `signal` fires, the result is no longer needed; if its
   * reason is `INTERRUPTED_REASON`, running programs must be ended too.
   */
  run(context: ToolContext, args: Static<S>, signal: AbortSignal): Promise<ToolResult>;
}

/** Defines a tool whose arguments are typed by its schema. */
export const defineTool = <S extends TSchema>(definition: Tool<S>): Tool => definition as unknown as Tool;

/** An error with a message for the model. `more` is added to the result. */
export class ToolError extends Error {
  override readonly name = "ToolError";
  readonly more: ToolResult;

  constructor(message: string, more: ToolResult = {}) {
    super(message);
    this.more = more;
  }
}

/** The workspace is unreachable although it should run. */
export class WorkspaceUnreachableError extends ToolError {}

/** The workspace is not running. */
export class WorkspaceStoppedError extends ToolError {}

/** The user wants the turn to end, so programs it has started are ended too. A stopping server leaves programs running. */
export const INTERRUPTED_REASON = new Error("the turn was interrupted");
