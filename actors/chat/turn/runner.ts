// The turns that run or wait for a slot, by chat. Chats start and stop them here; each ends on its own. Nothing of this is stored: what
// a crash takes away is begun again from the chat's own state (rule CH-16).

import { log } from "#base/log.ts";
import type { Parts } from "#base/parts.ts";
import { pause } from "#base/retry.ts";
import { beginSpan, currentSpan, errorType, inOwnSpan, type Span, type SpanOptions } from "#base/spans.ts";
import type { Restored } from "#schema/agents/checkpoint.ts";
import type { CallPreview } from "#src/tools/preview.ts";
import { INTERRUPTED } from "#src/tools/tool.ts";
import { Capacity, type Claimant, type Pool } from "../../runtime/capacity.ts";
import type { Begun, Interrupted } from "../effects.ts";
import type { NewMessage, PendingCall } from "../machine/decision.ts";
import type { CompactionCounts } from "../prompt/compactor.ts";
import { untilAnswered } from "../until-answered.ts";
import { bringFilesBack, type CopiedMessages, copyFiles, forgetFiles } from "./checkpoints.ts";
import type { TurnDeps } from "./deps.ts";
import { endRuns } from "./end-runs.ts";
import type { Engines, RunningTurn } from "./engine.ts";
import { type PreviewOf, previewCalls } from "./previews.ts";
import type { Slot } from "./slot.ts";
import type { PartBatch } from "./stream-buffer.ts";

/** Turns at once (facts/chats 1.12). */
export type Slots = Readonly<Record<Pool, number>>;
type Job = {
  readonly turn: RunningTurn;
  readonly part: number;
  /** What it was begun for, and when. */
  readonly reason: Span | undefined;
  readonly began: number;
  readonly coding_agent: string | null;
  release: () => void;
  done: Promise<void>;
};

type Started = Claimant & { readonly part: number; readonly coding_agent: string | null };

/** `tellWaiting`: a chat begins or ceases to wait for a slot. */
type GenerationsDeps = TurnDeps & {
  readonly parts: Parts;
  readonly tellWaiting: (chat_id: string, isWaiting: boolean) => void;
  readonly engines: Engines;
};

export class Generations {
  readonly #deps: GenerationsDeps;
  readonly #capacity: Capacity;
  readonly #jobs = new Map<string, Job>();
  readonly #stopping = new AbortController();
  readonly #reports = new Set<Promise<unknown>>();
  /** Turns that were given a slot since the start. */
  begun = 0;

  constructor(deps: GenerationsDeps, slots: Slots) {
    this.#deps = deps;
    this.#capacity = new Capacity(slots, deps.clock);
  }

  /**
   * Begins the turn that a chat owes on this history. A turn on another history is obsolete and ends; the same one continues. `goesOn`: it
   * was begun by a server that is no more, which may have been waiting for the time of `retry`.
   */
  start(
    { id: chat_id, owner_id, part, coding_agent }: Started,
    pool: Pool,
    history_version: number,
    begun: Begun = {},
  ): void {
    if (this.#stopping.signal.aborted || !this.#deps.parts.has(part)) return;
    const old = this.#jobs.get(chat_id);
    if (old && !old.turn.isStopped && old.turn.history_version === history_version) return;
    this.#end(old);
    const of = { id: chat_id, owner_id };
    const slot: Slot = {
      leave: () => job.release(),
      take: (signal) =>
        new Promise((resolve) => {
          signal.addEventListener("abort", () => resolve(), { once: true });
          job.release = this.#slotFor(of, pool, resolve);
        }),
      isOwed: () => this.#capacity.isOwed(pool, owner_id),
    };
    const turn = this.#deps.engines.of(coding_agent).begin({ chat_id, part, history_version, slot }, begun);
    const begun_at = { reason: currentSpan(), began: this.#deps.clock.now() };
    const job: Job = { turn, part, ...begun_at, coding_agent, release: () => {}, done: Promise.resolve() };
    this.#jobs.set(chat_id, job);
    const release = this.#slotFor(of, pool, () => {
      this.begun += 1;
      // Not before the way to give the slot back is known.
      job.done = Promise.resolve().then(() =>
        inOwnSpan(
          () => turnSpan(chat_id, job),
          job.reason,
          () => this.#run(chat_id, job),
        ),
      );
    });
    job.release = release;
    if (turn.isStopped) release();
  }

  /** Calls `run` once there is a slot; until then followers are told that the chat waits. Returns how to give it back, or to stop waiting. */
  #slotFor(of: Claimant, pool: Pool, run: () => void): () => void {
    const { id: chat_id } = of;
    let wasWaiting = false;
    const tell = (isWaiting: boolean): void => {
      if (wasWaiting === isWaiting) return;
      wasWaiting = isWaiting;
      this.#deps.tellWaiting(chat_id, isWaiting);
    };
    const release = this.#capacity.request(pool, of, () => {
      tell(false);
      run();
    });
    tell(this.#capacity.isWaiting(chat_id));
    return () => {
      release();
      tell(false);
    };
  }

  /**
   * Stops the turn and reports what it has said on this history, with what a coding agent still says while it ends. What its commands have
   * started is ended first, and where no turn runs them, what an earlier server has left of them; that is waited for only a moment.
   */
  interrupt(chat: Interrupted, history_version: number): void {
    const { id: chat_id } = chat;
    const job = this.#jobs.get(chat_id);
    if (job?.turn.isStopped) return;
    const isCurrent = job?.turn.buffer?.fence.history_version === history_version;
    const commands = job?.turn.commands;
    this.#end(job);
    const ended = commands ?? job?.turn.commands ?? endRuns(this.#deps, chat);
    const now = this.#deps.clock.now();
    const partial = (): NewMessage[] => (isCurrent ? job.turn.partial(now) : []);
    const report = this.#reportInterruption(chat_id, history_version, partial, ended);
    this.#reports.add(report);
    void report.finally(() => this.#reports.delete(report));
  }

  /** What the turn has said so far of its present step. */
  buffer(chat_id: string): PartBatch | undefined {
    return this.#jobs.get(chat_id)?.turn.buffer?.copy();
  }

  get compactions(): CompactionCounts {
    return this.#deps.compactions;
  }

  /** Returns what calls that wait for approval would do in the workspace now, in their order. */
  previewCalls(of: PreviewOf, calls: readonly PendingCall[]): Promise<CallPreview[]> {
    return previewCalls(this.#deps, of, calls);
  }

  /** Brings back the files of the workspace as they were at this message of the chat. 409 in words. */
  restoreFiles(of: Parameters<typeof bringFilesBack>[1], message_id: number): Promise<Restored> {
    return bringFilesBack(this.#deps, of, message_id);
  }

  /** A copy of a chat has the files that were kept of its source; not waited for. */
  copyFiles(of: Parameters<typeof copyFiles>[1], copied: CopiedMessages): void {
    void copyFiles(this.#deps, of, copied);
  }

  /** The workspace forgets the files it has kept of a chat that is no more; not waited for. */
  forgetFiles(of: Parameters<typeof forgetFiles>[1]): void {
    this.#deps.engines.forget(of.chat_id);
    void forgetFiles(this.#deps, of);
  }

  /** The chats that run something here: a turn, or a coding agent between its turns. */
  active(): ReadonlySet<string> {
    return new Set([...this.#jobs.keys(), ...this.#deps.engines.kept()]);
  }

  /** Ends the coding agent of a chat, if one runs. The next turn starts another one. */
  endAgent(chat_id: string): void {
    this.#deps.engines.forget(chat_id);
  }

  /** How many turns run, wait or are being stopped. */
  get size(): number {
    return this.#jobs.size;
  }

  /** How many of them wait for a slot. */
  get waiting(): number {
    return this.#capacity.waiting;
  }

  /** True while a turn runs, waits or is being stopped. */
  holds(chat_id: string): boolean {
    return this.#jobs.has(chat_id);
  }

  /** True while the chat's turn waits for a slot. */
  isWaiting(chat_id: string): boolean {
    return this.#capacity.isWaiting(chat_id);
  }

  /** Ends all turns without a report: they are begun again after the next start. */
  async stop(): Promise<void> {
    this.#stopping.abort(new Error("the server is stopping"));
    const jobs = [...this.#jobs.values()];
    for (const job of jobs) this.#end(job, LEAVING);
    this.#deps.engines.leave(() => true);
    await Promise.all([...jobs.map(({ done }) => done), ...this.#reports]);
    this.#jobs.clear();
  }

  /** The same for turns of these parts, with which other nodes go on: none of them begins here any more. */
  async leave(isLeaving: (part: number) => boolean): Promise<void> {
    const leaving = [...this.#jobs].filter(([, { part }]) => isLeaving(part));
    for (const [, job] of leaving) this.#end(job, LEAVING);
    this.#deps.engines.leave(isLeaving);
    await Promise.all(leaving.map(([, { done }]) => done));
    for (const [chat_id, job] of leaving) this.#forget(chat_id, job);
  }

  async #run(chat_id: string, job: Job): Promise<void> {
    try {
      beginSpan({ name: "wait for slot", began: job.began })?.end();
      await job.turn.run();
    } catch (error) {
      currentSpan()?.fail(errorType(error));
      log("chats").error("the turn of chat {chat_id} broke: {error}", { chat_id, error });
    } finally {
      job.release();
      job.turn.recording?.end(job.turn.isStopped);
      // One that was interrupted stays until its end is reported, so that late joiners still see what it has said.
      if (!job.turn.isStopped) this.#forget(chat_id, job);
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
    const over = new AbortController();
    void ended.then(() => over.abort());
    await pause(clock, ENDING_MS, AbortSignal.any([over.signal, this.#stopping.signal]));
    if (this.#stopping.signal.aborted && !over.signal.aborted) return;
    const args = { history_version, partial: partial() };
    await untilAnswered(clock, this.#stopping.signal, () => chats().ask(chat_id, "finishInterruption", args));
    if (job) this.#forget(chat_id, job);
  }

  /** Unless the server is leaving, what the turn's tools have started ends, too (rule TO-5). */
  #end(job: Job | undefined, reason = INTERRUPTED): void {
    job?.turn.stop(reason);
    job?.release();
  }

  #forget(chat_id: string, job: Job): void {
    if (this.#jobs.get(chat_id) === job) this.#jobs.delete(chat_id);
  }
}

/** A turn in the words of OpenTelemetry's conventions for generative AI. */
const turnSpan = (chat_id: string, { began, coding_agent }: Job): SpanOptions => ({
  name: `invoke_agent ${coding_agent ?? "slipway"}`,
  began,
  attributes: {
    "gen_ai.operation.name": "invoke_agent",
    "gen_ai.agent.name": coding_agent ?? "slipway",
    "gen_ai.conversation.id": chat_id,
  },
});

/** Until then the chat is `interrupting`, so that a server that dies in the meantime ends the commands after its start. */
const ENDING_MS = 1_000;
const LEAVING = new Error("the server is stopping");
