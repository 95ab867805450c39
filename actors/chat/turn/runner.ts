// Starts, stops and tracks the turns of this node's chats. Turns wait for a slot and run in the background. Nothing is stored here: after a
// crash, turns start again from the state of their chats (rule CH-16).
import { log } from "#base/log.ts";
import { pause } from "#base/retry.ts";
import {
  beginSpan,
  getCurrentSpan,
  getErrorType,
  runInDetachedSpan,
  type Span,
  type SpanOptions,
} from "#base/spans.ts";
import type { IsLeaving } from "#db/own-rows.ts";
import type { RestoreResult } from "#schema/agents/checkpoint.ts";
import type { CallPreview } from "#src/tools/preview.ts";
import { execute } from "#src/tools/processes/execute.ts";
import { endProcess } from "#src/tools/processes/processes.ts";
import { waitAgent } from "#src/tools/subagents/wait-agent.ts";
import { INTERRUPTED_REASON } from "#src/tools/tool.ts";
import { Capacity, type Claimant, type Pool } from "../../runtime/capacity.ts";
import type { InterruptedChat, TurnStart } from "../effects.ts";
import type { NewMessage, PendingCall } from "../machine/decision.ts";
import type { CompactionCounts } from "../prompt/compactor.ts";
import { retryUntilAnswered } from "../until-answered.ts";
import { splitAgentArgument } from "./agent-choice.ts";
import {
  type CheckpointChat,
  type CopiedMessages,
  copyCheckpoints,
  deleteChatFiles,
  restoreCheckpoint,
} from "./checkpoints.ts";
import type { TurnDeps } from "./deps.ts";
import type { Engines, RunningTurn } from "./engine.ts";
import { type PreviewScope, previewCalls } from "./previews.ts";
import type { Slot } from "./slot.ts";
import type { PartBatch } from "./stream-buffer.ts";
import { type AgentDeps, type ReachDeps, WorkspaceAgent } from "./tool-agent.ts";
import { toRunId } from "./tool-step.ts";

/** Maximum concurrent turns of root chats and of sub-chats (facts/chats 1.12). */
export type Slots = Readonly<Record<Pool, number>>;
type Job = {
  readonly turn: RunningTurn;
  readonly part: number;
  /** The span that was active when the turn was requested, and the time of the request. */
  readonly parentSpan: Span | undefined;
  readonly requestedAt: number;
  readonly coding_agent: string | null;
  /** Releases the slot, or stops waiting for one. */
  release: () => void;
  done: Promise<void>;
};

type TurnClaimant = Claimant & { readonly part: number; readonly coding_agent: string | null };

type GenerationsDeps = TurnDeps & {
  /** Returns whether turns of chats with this `part` run on this node. */
  readonly isHere: (part: number) => boolean;
  /** Called when a chat starts or stops waiting for a slot. */
  readonly publishWaiting: (chat_id: string, isWaiting: boolean) => void;
  readonly engines: Engines;
};

export class Generations {
  readonly #deps: GenerationsDeps;
  readonly #capacity: Capacity;
  readonly #jobs = new Map<string, Job>();
  readonly #stopping = new AbortController();
  readonly #reports = new Set<Promise<unknown>>();
  /** Number of turns that have started since the server's start. */
  startedTurns = 0;

  constructor(deps: GenerationsDeps, slots: Slots) {
    this.#deps = deps;
    this.#capacity = new Capacity(slots, deps.clock);
  }

  /** Starts the turn for this version of the history, unless it is already running. A turn for another version is obsolete and ends. */
  start(
    { id: chat_id, owner_id, part, coding_agent }: TurnClaimant,
    pool: Pool,
    history_version: number,
    startOptions: TurnStart = {},
  ): void {
    if (this.#stopping.signal.aborted || !this.#deps.isHere(part)) return;
    const current = this.#jobs.get(chat_id);
    if (current && !current.turn.isStopped && current.turn.history_version === history_version) return;
    this.#end(current);
    const claimant = { id: chat_id, owner_id };
    const slot: Slot = {
      leave: () => job.release(),
      take: (signal) =>
        new Promise((resolve) => {
          signal.addEventListener("abort", () => resolve(), { once: true });
          job.release = this.#requestSlot(claimant, pool, resolve);
        }),
      isOwed: () => this.#capacity.isOwed(pool, owner_id),
    };
    const turn = this.#deps.engines.of(coding_agent).begin({ chat_id, part, history_version, slot }, startOptions);
    const job: Job = {
      turn,
      part,
      coding_agent,
      parentSpan: getCurrentSpan(),
      requestedAt: this.#deps.clock.now(),
      release: () => {},
      done: Promise.resolve(),
    };
    this.#jobs.set(chat_id, job);
    job.release = this.#requestSlot(claimant, pool, () => {
      this.startedTurns += 1;
      // If a slot is available immediately, `job.release` must be set before the turn runs.
      job.done = Promise.resolve().then(() =>
        runInDetachedSpan(
          () => toTurnSpan(chat_id, job),
          job.parentSpan,
          () => this.#run(chat_id, job),
        ),
      );
    });
    if (turn.isStopped) job.release();
  }

  /** Calls `run` once a slot is available. Returns a function that releases the slot, or stops waiting for one. */
  #requestSlot(claimant: Claimant, pool: Pool, run: () => void): () => void {
    const { id: chat_id } = claimant;
    let wasWaiting = false;
    const notifyWaiting = (isWaiting: boolean): void => {
      if (wasWaiting === isWaiting) return;
      wasWaiting = isWaiting;
      this.#deps.publishWaiting(chat_id, isWaiting);
    };
    const release = this.#capacity.request(pool, claimant, () => {
      notifyWaiting(false);
      run();
    });
    notifyWaiting(this.#capacity.isWaiting(chat_id));
    return () => {
      release();
      notifyWaiting(false);
    };
  }

  /**
   * Stops the turn, ends its commands and sub-chats, and reports its output for this version of the history. Without a running turn, ends
   * the commands and sub-chats that a previous server process left running. Waits only briefly for their end.
   */
  interrupt(chat: InterruptedChat, history_version: number): void {
    const { id: chat_id } = chat;
    const job = this.#jobs.get(chat_id);
    if (job?.turn.isStopped) return;
    const isCurrent = job?.turn.buffer?.fence.history_version === history_version;
    const whenToolsEnded = job?.turn.whenEnded;
    this.#end(job);
    // A coding agent sets `whenEnded` only when it is stopped.
    const ended = whenToolsEnded ?? job?.turn.whenEnded ?? endRuns(this.#deps, chat);
    const now = this.#deps.clock.now();
    const listPartial = (): NewMessage[] => (isCurrent ? job.turn.listPartialMessages(now) : []);
    const report = this.#reportInterruption(chat_id, history_version, listPartial, ended);
    this.#reports.add(report);
    void report.finally(() => this.#reports.delete(report));
  }

  /** Returns the output so far of the turn's current step. */
  getPartialOutput(chat_id: string): PartBatch | undefined {
    return this.#jobs.get(chat_id)?.turn.buffer?.copy();
  }

  get compactions(): CompactionCounts {
    return this.#deps.compactions;
  }

  /** See `previewCalls` of previews.ts. */
  previewCalls(scope: PreviewScope, calls: readonly PendingCall[]): Promise<CallPreview[]> {
    return previewCalls(this.#deps, scope, calls);
  }

  /** See `restoreCheckpoint` of checkpoints.ts. */
  restoreCheckpoint(chat: CheckpointChat, message_id: number): Promise<RestoreResult> {
    return restoreCheckpoint(this.#deps, chat, message_id);
  }

  /** Copies checkpoints to a copied chat, in the background. */
  copyCheckpoints(chat: CheckpointChat, copied: CopiedMessages): void {
    void copyCheckpoints(this.#deps, chat, copied);
  }

  /** Ends the coding agent of a deleted chat, and deletes the workspace's data about the chat in the background. */
  deleteFiles(chat: CheckpointChat): void {
    this.#deps.engines.forget(chat.chat_id);
    void deleteChatFiles(this.#deps, chat);
  }

  /** Returns the chats with a turn, or with a coding agent between turns. */
  listActiveChats(): ReadonlySet<string> {
    return new Set([...this.#jobs.keys(), ...this.#deps.engines.listChatsWithState()]);
  }

  /** Stops the chat's coding agent. The next turn starts it again. */
  endAgent(chat_id: string): void {
    this.#deps.engines.forget(chat_id);
  }

  /** Number of turns that run, wait or are being stopped. */
  get size(): number {
    return this.#jobs.size;
  }

  /** Number of turns that wait for a slot. */
  get waiting(): number {
    return this.#capacity.waiting;
  }

  /** Returns whether a turn of the chat runs, waits or is being stopped. */
  hasActiveTurn(chat_id: string): boolean {
    return this.#jobs.has(chat_id);
  }

  /** Returns whether the chat's turn waits for a slot. */
  isWaiting(chat_id: string): boolean {
    return this.#capacity.isWaiting(chat_id);
  }

  /** Stops all turns without reports, so that the next server process resumes them. */
  async stop(): Promise<void> {
    this.#stopping.abort(STOPPING_REASON);
    const jobs = [...this.#jobs.values()];
    for (const job of jobs) this.#end(job, STOPPING_REASON);
    this.#deps.engines.release(() => true);
    await Promise.all([...jobs.map(({ done }) => done), ...this.#reports]);
    await this.#noteStopped(this.#jobs.keys());
    this.#jobs.clear();
  }

  /** Stops the turns of chats that move to another node. That node resumes them, because they end without reports. */
  async release(isLeaving: IsLeaving): Promise<void> {
    const leaving = [...this.#jobs].filter(([, { part }]) => isLeaving(part));
    for (const [, job] of leaving) this.#end(job, STOPPING_REASON);
    this.#deps.engines.release(isLeaving);
    await Promise.all(leaving.map(([, { done }]) => done));
    await this.#noteStopped(leaving.map(([chat_id]) => chat_id));
    for (const [chat_id, job] of leaving) this.#removeJob(chat_id, job);
  }

  /** Records that these turns were stopped on purpose. Otherwise, the next server process would count a crash. */
  async #noteStopped(chat_ids: Iterable<string>): Promise<void> {
    const { chats } = this.#deps;
    await Promise.all(
      [...chat_ids].map((id) =>
        chats()
          .ask(id, "noteStopped", {})
          .catch((error) => log("chats").debug("chat {id} counts this stop as a crash: {error}", { id, error })),
      ),
    );
  }

  async #run(chat_id: string, job: Job): Promise<void> {
    try {
      beginSpan({ name: "wait for slot", began: job.requestedAt })?.end();
      await job.turn.run();
    } catch (error) {
      getCurrentSpan()?.fail(getErrorType(error));
      log("chats").error("the turn of chat {chat_id} failed unexpectedly: {error}", { chat_id, error });
    } finally {
      job.release();
      job.turn.recording?.end(job.turn.isStopped);
      // The job of an interrupted turn stays until its output is reported, so that new followers still see the output.
      if (!job.turn.isStopped) this.#removeJob(chat_id, job);
    }
  }

  async #reportInterruption(
    chat_id: string,
    history_version: number,
    listPartial: () => NewMessage[],
    ended: Promise<unknown>,
  ): Promise<void> {
    const job = this.#jobs.get(chat_id);
    const { clock, chats } = this.#deps;
    const runsEnded = new AbortController();
    void ended.then(() => runsEnded.abort());
    await pause(clock, MAX_INTERRUPTING_MS, AbortSignal.any([runsEnded.signal, this.#stopping.signal]));
    if (this.#stopping.signal.aborted && !runsEnded.signal.aborted) return;
    const args = { history_version, partial: listPartial() };
    await retryUntilAnswered(clock, this.#stopping.signal, () => chats().ask(chat_id, "finishInterruption", args));
    if (job) this.#removeJob(chat_id, job);
  }

  /** Stops the turn and releases its slot. By default, also ends the commands that its tools have started (rule TO-5). */
  #end(job: Job | undefined, reason = INTERRUPTED_REASON): void {
    job?.turn.stop(reason);
    job?.release();
  }

  #removeJob(chat_id: string, job: Job): void {
    if (this.#jobs.get(chat_id) === job) this.#jobs.delete(chat_id);
  }
}

/** Describes a turn by OpenTelemetry's conventions for generative AI. */
const toTurnSpan = (chat_id: string, { requestedAt, coding_agent }: Job): SpanOptions => ({
  name: `invoke_agent ${coding_agent ?? "slipway"}`,
  began: requestedAt,
  attributes: {
    "gen_ai.operation.name": "invoke_agent",
    "gen_ai.agent.name": coding_agent ?? "slipway",
    "gen_ai.conversation.id": chat_id,
  },
});

/**
 * How long an interrupt waits for commands and sub-chats to end. Until then the chat is `interrupting`, so that after a crash, the next
 * server process ends them.
 */
const MAX_INTERRUPTING_MS = 1_000;
const STOPPING_REASON = new Error("the server is stopping");

type Deps = ReachDeps & Pick<AgentDeps, "subagents">;

/** Ends the commands and sub-chats of the calls. Resolves when all have ended, or have been unreachable for too long. Never rejects. */
const endRuns = (deps: Deps, { id: chat_id, pending_calls, scope }: InterruptedChat): Promise<unknown> =>
  Promise.all(
    pending_calls.map(async (call) => {
      const ids = { chat_id, run_id: toRunId(chat_id, call) };
      if (call.tool_name === execute.name) {
        const agent = new WorkspaceAgent(deps, { ...scope, ...ids }, true, { name: splitAgentArgument(call).agent });
        await endProcess({ agent, clock: deps.clock }, ids.run_id);
      }
      if (call.tool_name !== waitAgent.name) return;
      const { chat_id: subchat_id } = (call.args ?? {}) as { chat_id?: unknown };
      if (typeof subchat_id === "string")
        await deps
          .subagents({ ...ids, call })
          .interrupt(subchat_id)
          .catch(() => {});
    }),
  );
