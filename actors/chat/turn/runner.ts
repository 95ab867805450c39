// The turns that run or wait for a slot, by chat. Chats start and stop them here; each turn ends without being awaited. Nothing is stored:
// after a crash, turns are started again from the chat's state (rule CH-16).

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
import { findAgentOfCall } from "./agent-choice.ts";
import { type CopiedMessages, copyFiles, deleteChatFiles, restoreCheckpoint } from "./checkpoints.ts";
import type { TurnDeps } from "./deps.ts";
import type { Engines, RunningTurn } from "./engine.ts";
import { type PreviewScope, previewCalls } from "./previews.ts";
import type { Slot } from "./slot.ts";
import type { PartBatch } from "./stream-buffer.ts";
import { type AgentDeps, type ReachDeps, WorkspaceAgent } from "./tool-agent.ts";
import { toRunId } from "./tool-step.ts";

/** Maximum concurrent turns (facts/chats 1.12). */
export type Slots = Readonly<Record<Pool, number>>;
type Job = {
  readonly turn: RunningTurn;
  readonly part: number;
  /** The span in which the turn was started, and the time. */
  readonly reason: Span | undefined;
  readonly began: number;
  readonly coding_agent: string | null;
  release: () => void;
  done: Promise<void>;
};

type TurnClaimant = Claimant & { readonly part: number; readonly coding_agent: string | null };

/** `tellWaiting`: called when a chat starts or stops waiting for a slot. */
type GenerationsDeps = TurnDeps & {
  readonly isHere: (part: number) => boolean;
  readonly tellWaiting: (chat_id: string, isWaiting: boolean) => void;
  readonly engines: Engines;
};

export class Generations {
  readonly #deps: GenerationsDeps;
  readonly #capacity: Capacity;
  readonly #jobs = new Map<string, Job>();
  readonly #stopping = new AbortController();
  readonly #reports = new Set<Promise<unknown>>();
  /** Turns that have got a slot since the start. */
  begun = 0;

  constructor(deps: GenerationsDeps, slots: Slots) {
    this.#deps = deps;
    this.#capacity = new Capacity(slots, deps.clock);
  }

  /**
   * Begins the turn that is due on this history. A turn on another history is obsolete and ends; a turn on the same history continues.
   * `isResumed`: the turn was begun by a previous server, which may have been waiting for the time of `retry`.
   */
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
    const startInfo = { reason: getCurrentSpan(), began: this.#deps.clock.now() };
    const job: Job = { turn, part, ...startInfo, coding_agent, release: () => {}, done: Promise.resolve() };
    this.#jobs.set(chat_id, job);
    const release = this.#requestSlot(claimant, pool, () => {
      this.begun += 1;
      // Runs later, so that the function to release the slot is set first.
      job.done = Promise.resolve().then(() =>
        runInDetachedSpan(
          () => toTurnSpan(chat_id, job),
          job.reason,
          () => this.#run(chat_id, job),
        ),
      );
    });
    job.release = release;
    if (turn.isStopped) release();
  }

  /**
   * Calls `run` once a slot is available; until then followers see that the chat waits. Returns a function that releases the slot or stops
   * waiting.
   */
  #requestSlot(claimant: Claimant, pool: Pool, run: () => void): () => void {
    const { id: chat_id } = claimant;
    let wasWaiting = false;
    const notifyWaiting = (isWaiting: boolean): void => {
      if (wasWaiting === isWaiting) return;
      wasWaiting = isWaiting;
      this.#deps.tellWaiting(chat_id, isWaiting);
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
   * Stops the turn and reports its output on this history, including late output of a coding agent. First ends the turn's commands and
   * sub-chats, or without a turn, the ones that a previous server left running. Waits only briefly for their end.
   */
  interrupt(chat: InterruptedChat, history_version: number): void {
    const { id: chat_id } = chat;
    const job = this.#jobs.get(chat_id);
    if (job?.turn.isStopped) return;
    const isCurrent = job?.turn.buffer?.fence.history_version === history_version;
    const whenEnded = job?.turn.whenEnded;
    this.#end(job);
    const ended = whenEnded ?? job?.turn.whenEnded ?? endRuns(this.#deps, chat);
    const now = this.#deps.clock.now();
    const partial = (): NewMessage[] => (isCurrent ? job.turn.listPartialMessages(now) : []);
    const report = this.#reportInterruption(chat_id, history_version, partial, ended);
    this.#reports.add(report);
    void report.finally(() => this.#reports.delete(report));
  }

  /** Returns the output so far of the turn's current step. */
  buffer(chat_id: string): PartBatch | undefined {
    return this.#jobs.get(chat_id)?.turn.buffer?.copy();
  }

  get compactions(): CompactionCounts {
    return this.#deps.compactions;
  }

  /** Returns what calls that wait for approval would do in the workspace now, in order. */
  previewCalls(scope: PreviewScope, calls: readonly PendingCall[]): Promise<CallPreview[]> {
    return previewCalls(this.#deps, scope, calls);
  }

  /** Restores the workspace's files from the checkpoint of this message. Rejects with 409 and a readable message. */
  restoreFiles(chat: Parameters<typeof restoreCheckpoint>[1], message_id: number): Promise<RestoreResult> {
    return restoreCheckpoint(this.#deps, chat, message_id);
  }

  /** Copies checkpoints to a copied chat, in the background. */
  copyFiles(chat: Parameters<typeof copyFiles>[1], copied: CopiedMessages): void {
    void copyFiles(this.#deps, chat, copied);
  }

  /** Deletes the workspace's data of a deleted chat, in the background. */
  forgetFiles(chat: Parameters<typeof deleteChatFiles>[1]): void {
    this.#deps.engines.forget(chat.chat_id);
    void deleteChatFiles(this.#deps, chat);
  }

  /** Returns the chats with a turn, or with a coding agent between turns. */
  active(): ReadonlySet<string> {
    return new Set([...this.#jobs.keys(), ...this.#deps.engines.listChatsWithState()]);
  }

  /** Stops a running coding agent of the chat. The next turn starts another one. */
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
  hasTurn(chat_id: string): boolean {
    return this.#jobs.has(chat_id);
  }

  /** Returns whether the chat's turn waits for a slot. */
  isWaiting(chat_id: string): boolean {
    return this.#capacity.isWaiting(chat_id);
  }

  /** Stops all turns without a report. The next start begins them again. */
  async stop(): Promise<void> {
    this.#stopping.abort(new Error("the server is stopping"));
    const jobs = [...this.#jobs.values()];
    for (const job of jobs) this.#end(job, STOPPING_REASON);
    this.#deps.engines.release(() => true);
    await Promise.all([...jobs.map(({ done }) => done), ...this.#reports]);
    await this.#noteStopped(this.#jobs.keys());
    this.#jobs.clear();
  }

  /** Stops the turns of leaving chats without a report. Other nodes continue them, and no turn of these chats begins here anymore. */
  async release(isLeaving: IsLeaving): Promise<void> {
    const leaving = [...this.#jobs].filter(([, { part }]) => isLeaving(part));
    for (const [, job] of leaving) this.#end(job, STOPPING_REASON);
    this.#deps.engines.release(isLeaving);
    await Promise.all(leaving.map(([, { done }]) => done));
    await this.#noteStopped(leaving.map(([chat_id]) => chat_id));
    for (const [chat_id, job] of leaving) this.#removeJob(chat_id, job);
  }

  /** Records that these turns were stopped, because the next server would otherwise count a crash. */
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
      beginSpan({ name: "wait for slot", began: job.began })?.end();
      await job.turn.run();
    } catch (error) {
      getCurrentSpan()?.fail(getErrorType(error));
      log("chats").error("the turn of chat {chat_id} failed unexpectedly: {error}", { chat_id, error });
    } finally {
      job.release();
      job.turn.recording?.end(job.turn.isStopped);
      // An interrupted turn stays until its end is reported, so that late joiners still see its output.
      if (!job.turn.isStopped) this.#removeJob(chat_id, job);
    }
  }

  async #reportInterruption(
    chat_id: string,
    history_version: number,
    partial: () => NewMessage[],
    ended: Promise<unknown>,
  ): Promise<void> {
    const job = this.#jobs.get(chat_id);
    const { clock, chats } = this.#deps;
    const runsEnded = new AbortController();
    void ended.then(() => runsEnded.abort());
    await pause(clock, INTERRUPTING_MS, AbortSignal.any([runsEnded.signal, this.#stopping.signal]));
    if (this.#stopping.signal.aborted && !runsEnded.signal.aborted) return;
    const args = { history_version, partial: partial() };
    await retryUntilAnswered(clock, this.#stopping.signal, () => chats().ask(chat_id, "finishInterruption", args));
    if (job) this.#removeJob(chat_id, job);
  }

  /** Also ends what the turn's tools have started, unless the server is shutting down (rule TO-5). */
  #end(job: Job | undefined, reason = INTERRUPTED_REASON): void {
    job?.turn.stop(reason);
    job?.release();
  }

  #removeJob(chat_id: string, job: Job): void {
    if (this.#jobs.get(chat_id) === job) this.#jobs.delete(chat_id);
  }
}

/** Describes a turn by OpenTelemetry's conventions for generative AI. */
const toTurnSpan = (chat_id: string, { began, coding_agent }: Job): SpanOptions => ({
  name: `invoke_agent ${coding_agent ?? "slipway"}`,
  began,
  attributes: {
    "gen_ai.operation.name": "invoke_agent",
    "gen_ai.agent.name": coding_agent ?? "slipway",
    "gen_ai.conversation.id": chat_id,
  },
});

/** The chat stays `interrupting` for this long, so that a server that crashes in between ends the commands at its next start. */
const INTERRUPTING_MS = 1_000;
const STOPPING_REASON = new Error("the server is stopping");

type Deps = ReachDeps & Pick<AgentDeps, "subagents">;

/** Ends the commands and sub-chats of the calls. Resolves when all have ended, or have been unreachable for too long. Never rejects. */
const endRuns = (deps: Deps, { id: chat_id, pending_calls, about }: InterruptedChat): Promise<unknown> =>
  Promise.all(
    pending_calls.map(async (call) => {
      const ids = { chat_id, run_id: toRunId(chat_id, call) };
      if (call.tool_name === execute.name) {
        const agent = new WorkspaceAgent(deps, { ...about, ...ids }, true, { name: findAgentOfCall(call).agent });
        await endProcess({ agent, clock: deps.clock }, ids.run_id);
      }
      if (call.tool_name !== waitAgent.name) return;
      const { chat_id: child } = (call.args ?? {}) as { chat_id?: unknown };
      const agents = deps.subagents({ ...ids, call });
      if (typeof child === "string") await agents.interrupt(child).catch(() => {});
    }),
  );
