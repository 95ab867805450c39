// What a tool of a chat is: a name, what it tells the model, its arguments, and how it runs. Tools know the workspace only through
// `ToolAgent`, so they care for no connection and no table. They run outside of every mailbox.

import type { Static, TSchema } from "@sinclair/typebox";
import type { Clock } from "#base/clock.ts";
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
  /** Without it the request is answered whatever becomes of the turn. */
  readonly signal?: AbortSignal;
  /** It may be sent again, and waits a while for an agent that is away: asking twice does it once. */
  readonly patient?: boolean;
  /** It may take longer than others: so many milliseconds in all. */
  readonly answer_ms?: number;
  /** It ends what the chat has started, so it is sent even where the chat's owner may no longer use the workspace. */
  readonly ends?: boolean;
};

export interface ToolAgent {
  /** The answer's JSON. Throws `ToolError` in words for the model, also when the workspace cannot be reached. */
  call<T>(call: AgentCall): Promise<T>;
  /** The answer's bytes to a GET of this path; throws as `call`, also for more than `most`. */
  bytes(path: string, most: number, signal: AbortSignal): Promise<Uint8Array>;
}

export type ToolContext = Live & {
  readonly clock: Clock;
  readonly agent: ToolAgent;
  readonly services: ToolServices;
  readonly agents: Subagents;
  readonly skills: Skills;
  /** A UUID that is the same whenever this call is run again, after a crash too. */
  readonly run_id: string;
  /** This call may have run before: the server has been started again since. */
  readonly again: boolean;
  /** Tokens that the model can be given; 0 when unknown. */
  readonly context_limit: number;
  /** Present: what is run may write no files but these. */
  readonly writable_only?: readonly string[];
  /** Hides secrets. What tools answer goes through it in any case; what they cut or tell on must do so before. */
  readonly mask: SecretMask;
};

export interface Tool<S extends TSchema = TSchema> {
  readonly name: string;
  readonly description: string;
  readonly input_schema: S;
  /** Once it has answered without an error the turn is over: a person has the word (rule PM-4). */
  readonly ends_turn?: true;
  /** It changes no file of the workspace, so it need not wait until they are kept (rule UN-1). */
  readonly only_reads?: true;
  /** Its result has `image`, a file of the chat that models are shown (rule DT-5). */
  readonly gives_image?: true;
  /**
   * The result. Throws `ToolError` for what the model can mend. When `signal` fires nobody waits for the result any more; its reason is
   * `INTERRUPTED` when what runs must be ended, too.
   */
  run(context: ToolContext, args: Static<S>, signal: AbortSignal): Promise<ToolResult>;
}

/** A tool whose arguments are typed by its schema. */
export const tool = <S extends TSchema>(definition: Tool<S>): Tool => definition as unknown as Tool;

/** What went wrong, in words for the model. `more` goes into the result alongside it. */
export class ToolError extends Error {
  override readonly name = "ToolError";
  readonly more: ToolResult;

  constructor(message: string, more: ToolResult = {}) {
    super(message);
    this.more = more;
  }
}

/** The workspace cannot be reached now, though it should run. */
export class WorkspaceAway extends ToolError {}

/** The workspace does not run. */
export class WorkspaceStopped extends ToolError {}

/** Someone wants the turn to end: what it has started ends with it. A server that stops leaves programs alone. */
export const INTERRUPTED = new Error("the turn was interrupted");
