// A node's single writer. Batches that arrive while a group is being written form the next group, so that the group size adapts to the
// database. BEGIN, the ownership guard, all statements and COMMIT are sent in one pipeline (rules ST-1 to ST-7).
import type { ReservedSQL } from "bun";
import { systemClock, type Timer } from "#base/clock.ts";
import { failpoint, isArmed } from "#base/failpoint.ts";
import { isTraceEnabled } from "#base/log.ts";
import { nextTurn, pause } from "#base/retry.ts";
import { CommitSpan } from "../engine/commit-span.ts";
import { CommitTrace } from "../engine/commit-trace.ts";
import { type CommitFigures, measureBatch, type Pending } from "../engine/pending.ts";
import { Settlements } from "../engine/settlements.ts";
import type { Statement } from "../engine/sql.ts";
import { CommitError } from "../engine/store.ts";
import { type BoundText, toBoundTexts } from "./bind.ts";
import { gatherOutgoing } from "./gather.ts";
import { toLockStatement } from "./guard-locks.ts";
import { toCounterUpdate } from "./notices/counters.ts";
import { type BroadcastEvent, MAX_NOTIFICATIONS, makeNotice, toNotifications } from "./notices/notice.ts";
import { DEFAULT_WAIT_MS, type Primary } from "./primary.ts";
import { isAnswer, isWorthRepeating, parseLostShards, toCommitError } from "./refusal.ts";

const MAX_GROUP_ROWS = 500;
const MAX_QUEUE_BYTES = 64 * 1024 * 1024;
/** How often a group is retried after a conflict with another transaction. */
const MAX_RETRIES = 5;
/** Delay before events that could not be sent are retried. */
const REBROADCAST_DELAY_MS = 100;
/** After this many rejections, the batches of a group are sent one by one, each in a savepoint: five times the cost, but bounded. */
const MAX_PIPELINE_REFUSALS = 2;

type RefusedBatch = { readonly pending: Pending; readonly error: unknown };

/** `deadline`: on the monotonic clock. After it, an unsent batch is rejected, and the result of a sent one is unknown. */
type WaitingBatch = Pending & { readonly deadline: number };

/** A group on its way to the database. */
type Sending = { readonly deadline: number; stopWaiting(error: CommitError): void };

export type WriterOptions = {
  readonly primary: Primary;
  /**
   * Returns the first statement of each transaction, for the sorted shards of its batches. It raises SW002 if another node has taken over.
   */
  guard(shards: readonly number[]): BoundText;
  /** Maximum bytes of waiting batches before new ones are rejected as `overloaded`; default 64 MiB. */
  readonly queueBytes?: number | undefined;
  /** How long a batch waits for the database; default 15 s. */
  readonly wait_ms?: number | undefined;
  /** Identifies this node as the sender; undefined: sends nothing. */
  readonly noticeSender?: { readonly node: string; readonly epoch: number } | undefined;
  /** Called when another node owns the data: the process must exit. */
  fatal(error: Error): void;
};

export class PgWriter {
  readonly #options: WriterOptions;
  #queue: WaitingBatch[] = [];
  #queuedBytes = 0;
  #sending: Sending | undefined;
  /** Fires when the oldest batch times out, or earlier if that one has completed since. */
  #expiryTimer: Timer | undefined;
  /** Events to send to other nodes with the next group. */
  #events: BroadcastEvent[] = [];
  #running: Promise<void> | undefined;
  #stopped: CommitError | undefined;
  /** Number of notices sent, including those of the running transaction. */
  #lastNumber = 0;
  #broadcasting: number | undefined;
  /** Number of notices that are committed, or may be. */
  sentNotices = 0;
  readonly #trace = new CommitTrace<Pending>();
  readonly #settlements = new Settlements();
  /** Groups, batches and retries so far, for the log and the benchmark. */
  readonly counts = { groups: 0, batches: 0, repeats: 0 };
  /** Observes the duration of each group, including its flush, and its rows, for metrics. */
  watch: CommitFigures["watch"];

  constructor(options: WriterOptions) {
    this.#options = options;
  }

  /** Resolves when the batch is committed. `shard` and `about` as in `Store.commit`. */
  submit(batch: readonly Statement[], shard?: number, about?: string): Promise<void> {
    if (this.#stopped) return Promise.reject(this.#stopped);
    const filled = batch.filter(({ rows }) => rows.length > 0);
    if (filled.length === 0) return Promise.resolve();
    const { rows, bytes } = measureBatch(filled);
    if (this.#queuedBytes > 0 && this.#queuedBytes + bytes > (this.#options.queueBytes ?? MAX_QUEUE_BYTES)) {
      return Promise.reject(new CommitError("overloaded", "too many writes are waiting"));
    }
    const span = CommitSpan.begin("postgresql", filled, rows);
    const settled = new Promise<void>((resolve, reject) => {
      const pending = {
        batch: filled,
        rows,
        bytes,
        part: shard,
        about,
        span,
        resolve,
        reject,
        deadline: this.#toDeadline(),
      };
      this.#expireAt(pending.deadline);
      if (isTraceEnabled()) this.#trace.onSubmit(pending);
      this.#queue.push(pending);
      this.#queuedBytes += bytes;
      this.#running ??= this.#runGroups();
    });
    return span?.endWith(settled) ?? settled;
  }

  /** Sends an event to other nodes with the next group. Retries unless it was certainly sent, since duplicates are harmless. */
  broadcast(word: BroadcastEvent): void {
    if (this.#options.noticeSender === undefined || this.#stopped) return;
    // At the limit, the notice says "everything", which includes later events.
    if (this.#events.length < MAX_NOTIFICATIONS) this.#events.push(word);
    this.#running ??= this.#runGroups();
  }

  async #rebroadcast(events: readonly BroadcastEvent[]): Promise<void> {
    await pause(systemClock, REBROADCAST_DELAY_MS);
    for (const word of events) this.broadcast(word);
  }

  /** Rejects new batches and resolves when the waiting ones are settled. */
  async stop(): Promise<void> {
    this.#stopped ??= new CommitError("closed", "the store is closing");
    await this.#running;
    await this.#settlements.whenDrained();
    this.#expiryTimer?.cancel();
  }

  /** Stops waiting for the database: unsent batches are rejected and never written; sent ones become `unknown`. */
  stopWaiting(): void {
    this.#reject(this.#queue.splice(0));
    this.#abandonSent();
  }

  #reject(batches: readonly WaitingBatch[]): void {
    for (const { reject, bytes } of batches) {
      this.#queuedBytes -= bytes;
      reject(new CommitError("unreachable", "the database does not answer"));
    }
  }

  /** Answers the callers immediately. No other batch is written before the database has finished the group (rule PQ-17). */
  #abandonSent(): void {
    this.#sending?.stopWaiting(new CommitError("unknown", "the database has not answered in time"));
    this.#sending = undefined;
  }

  /** Returns the deadline of a new batch. */
  #toDeadline(): number {
    return systemClock.monotonic() + (this.#options.wait_ms ?? DEFAULT_WAIT_MS);
  }

  #expireAt(deadline: number): void {
    this.#expiryTimer ??= systemClock.after(Math.max(0, deadline - systemClock.monotonic()), () => this.#expire());
  }

  #expire(): void {
    this.#expiryTimer = undefined;
    const now = systemClock.monotonic();
    if (this.#sending && this.#sending.deadline <= now) this.#abandonSent();
    const first = this.#queue.findIndex(({ deadline }) => deadline > now);
    this.#reject(this.#queue.splice(0, first < 0 ? this.#queue.length : first));
    const next = this.#sending?.deadline ?? this.#queue[0]?.deadline;
    if (next !== undefined) this.#expireAt(next);
  }

  async #runGroups(): Promise<void> {
    // Batches submitted in one turn of the event loop share a group.
    await nextTurn();
    while (this.#queue.length > 0 || this.#events.length > 0) {
      // Batches stay in the queue until there is a connection, so that they can time out.
      const isConnected = await this.#options.primary.writer().then(
        () => true,
        () => false,
      );
      const events = this.#events.splice(0);
      if (!isConnected) {
        this.#reject(this.#queue.splice(0));
        if (events.length > 0) void this.#rebroadcast(events);
        continue;
      }
      const group = this.#takeGroup();
      try {
        await this.#commit(group, events);
      } catch (error) {
        const refusal = toCommitError(error);
        if (events.length > 0) void this.#rebroadcast(events);
        for (const { reject } of group) reject(refusal);
        if (refusal.reason === "closed" && !this.#stopped) this.#end(refusal);
      }
      for (const { bytes } of group) this.#queuedBytes -= bytes;
    }
    // Happens in the same turn in which the queue was found empty, so that no batch is left in a queue that is not processed.
    this.#running = undefined;
  }

  /** Another node has taken over, so nothing more is written. */
  #end(refusal: CommitError): void {
    this.#stopped = refusal;
    for (const { reject, bytes } of this.#queue.splice(0)) {
      this.#queuedBytes -= bytes;
      reject(refusal);
    }
    this.#options.fatal(refusal);
  }

  #takeGroup(): WaitingBatch[] {
    let rows = 0;
    let count = 0;
    for (const pending of this.#queue) {
      rows += pending.rows;
      if (count > 0 && rows > MAX_GROUP_ROWS) break;
      count++;
    }
    return this.#queue.splice(0, count);
  }

  /**
   * Commits the group without rejected batches. Those are answered only afterwards, so that the loser of a race reads what the winner has
   * written.
   */
  async #commit(group: readonly WaitingBatch[], events: readonly BroadcastEvent[]): Promise<void> {
    const refused: RefusedBatch[] = [];
    const getElapsedMs = this.#trace.begin();
    const beganAt = this.watch?.now() ?? 0;
    for (const { span } of group) span?.sending(group.length);
    let remaining = group;
    let isGathered = true;
    for (let retryCount = 0; remaining.length > 0 || events.length > 0; ) {
      // On failure, nothing of the group is written, even in a retry.
      const connection = await this.#options.primary.writer(getRemainingMs(group));
      let failed: RefusedBatch | "gathered" | undefined;
      try {
        if (refused.length >= MAX_PIPELINE_REFUSALS) {
          refused.push(...(await this.#awaitAnswer(group, this.#sendCarefully(connection, remaining, events))));
          break;
        }
        failed = await this.#awaitAnswer(group, this.#sendPipeline(connection, remaining, events, isGathered));
      } catch (error) {
        if (!isAnswer(error)) {
          this.#options.primary.dropConnections(connection);
          this.#countNotices();
        }
        this.#broadcasting = undefined;
        const lost = parseLostShards(error);
        const kept = remaining.filter(({ part }) => part === undefined || !lost.includes(part));
        if (kept.length < remaining.length) {
          for (const pending of remaining) if (!kept.includes(pending)) refused.push({ pending, error });
          remaining = kept;
          continue;
        }
        if (!isWorthRepeating(error) || ++retryCount > MAX_RETRIES) throw error;
        this.counts.repeats++;
        continue;
      }
      if (!failed) break;
      this.#broadcasting = undefined;
      if (failed === "gathered") {
        isGathered = false;
        continue;
      }
      const { pending: refusedOne } = failed;
      if (isWorthRepeating(failed.error) && ++retryCount <= MAX_RETRIES) {
        this.counts.repeats++;
        continue;
      }
      refused.push(failed);
      remaining = remaining.filter((pending) => pending !== refusedOne);
    }
    failpoint("after_commit");
    this.#countNotices();
    this.counts.groups++;
    this.counts.batches += group.length;
    this.watch?.flushed(
      this.watch.now() - beganAt,
      group.reduce((sum, { rows }) => sum + rows, 0),
    );
    if (getElapsedMs) this.#trace.onCommit(group, this.counts.groups, getElapsedMs());
    const errors = new Map(refused.map(({ pending, error }) => [pending, error]));
    this.#settlements.add(
      group.map((pending) =>
        errors.has(pending) ? () => pending.reject(toCommitError(errors.get(pending))) : pending.resolve,
      ),
    );
  }

  /** Returns the result of the group, or throws `unknown` when its callers' deadline passes first. */
  async #awaitAnswer<T>([oldest]: readonly WaitingBatch[], answer: Promise<T>): Promise<T> {
    const { promise, reject } = Promise.withResolvers<never>();
    this.#sending = { deadline: oldest?.deadline ?? this.#toDeadline(), stopWaiting: reject };
    this.#expireAt(this.#sending.deadline);
    try {
      return await Promise.race([answer, promise]);
    } finally {
      this.#sending = undefined;
    }
  }

  /**
   * Sends the group in one pipeline. Returns the rejected batch, in which case nothing was written, or "gathered" if combined rows were
   * rejected. Throws if the group as a whole failed.
   */
  async #sendPipeline(
    connection: ReservedSQL,
    group: readonly Pending[],
    events: readonly BroadcastEvent[],
    isGathered: boolean,
  ): Promise<RefusedBatch | "gathered" | undefined> {
    const sent: { readonly source?: Pending; readonly answer: Promise<{ command?: string }> }[] = [];
    const send = ({ text, params }: BoundText, source?: Pending) =>
      sent.push({
        ...(source ? { source } : {}),
        // Without parameters, uses the simple protocol, which needs no PREPARE round trip.
        answer: (params.length === 0 ? connection.unsafe(text) : connection.unsafe(text, params as never[])).execute(),
      });
    // Prepared, because the simple protocol waits for an answer before anything else is sent: three waits per group instead of one.
    sent.push({ answer: connection`begin`.execute() });
    send(this.#options.guard(listShards(group)));
    if (isArmed("after_guard")) {
      await Promise.allSettled(sent.map(({ answer }) => answer));
      failpoint("after_guard");
    }
    const locks = toLockStatement(group);
    if (locks) send(locks);
    const started = sent.length;
    for (const { sent: one, source } of gatherOutgoing(group, isGathered)) send(one, source);
    for (const one of this.#makeNotifications(group, events)) send(one);
    failpoint("before_commit");
    sent.push({ answer: connection`commit`.execute() });
    const answers = await Promise.allSettled(sent.map(({ answer }) => answer));
    const first = answers.findIndex(({ status }) => status === "rejected");
    if (first < 0) {
      checkCommitted((answers.at(-1) as PromiseFulfilledResult<{ command?: string }>).value);
      return undefined;
    }
    const error = (answers[first] as PromiseRejectedResult).reason;
    const pending = sent[first]?.source;
    const isOfSeveral = isGathered && !pending && first >= started && first < sent.length - 1;
    // With a broken connection, it is unknown whether COMMIT arrived.
    if (
      (!pending && !isOfSeveral) ||
      !isAnswer(error) ||
      answers.some((one) => one.status === "rejected" && !isAnswer(one.reason))
    ) {
      throw error;
    }
    return pending ? { pending, error } : "gathered";
  }

  /** Part of the transaction, so that other nodes are notified only when the rows are visible, and not at all if it fails. */
  #makeNotifications(group: readonly Pending[], events: readonly BroadcastEvent[]): BoundText[] {
    const { noticeSender } = this.#options;
    if (noticeSender === undefined) return [];
    const batches = group.map(({ batch }) => batch);
    const counters = toCounterUpdate(noticeSender, group);
    const notice = makeNotice(noticeSender.epoch, batches, events);
    const notices = notice ? toNotifications(notice, this.#lastNumber) : [];
    this.#lastNumber += notices.length;
    this.#broadcasting = notice && this.#lastNumber;
    return [...(counters ? [counters] : []), ...notices];
  }

  /** Uses each number once. A number of a failed transaction is skipped, which receivers tolerate after the next one. */
  #countNotices(): void {
    this.sentNotices = this.#broadcasting ?? this.sentNotices;
    this.#broadcasting = undefined;
  }

  /** Runs one transaction with a savepoint per batch. Returns the rejected batches. */
  async #sendCarefully(
    connection: ReservedSQL,
    group: readonly Pending[],
    events: readonly BroadcastEvent[],
  ): Promise<RefusedBatch[]> {
    const refused: RefusedBatch[] = [];
    await connection.unsafe("begin");
    try {
      const guard = this.#options.guard(listShards(group));
      await connection.unsafe(guard.text, guard.params as never[]);
      const locks = toLockStatement(group);
      if (locks) await connection.unsafe(locks.text);
      for (const pending of group) {
        await connection.unsafe("savepoint batch");
        const answers = await Promise.allSettled(
          pending.batch
            .flatMap(toBoundTexts)
            .map(({ text, params }) => connection.unsafe(text, params as never[]).execute()),
        );
        const error = answers.find(({ status }) => status === "rejected") as PromiseRejectedResult | undefined;
        if (error && !isAnswer(error.reason)) throw error.reason;
        if (error) refused.push({ pending, error: error.reason });
        await connection.unsafe(error ? "rollback to savepoint batch" : "release savepoint batch");
      }
      const done = group.filter((pending) => !refused.some((one) => one.pending === pending));
      for (const { text, params } of this.#makeNotifications(done, events))
        await connection.unsafe(text, params as never[]);
      failpoint("before_commit");
      checkCommitted((await connection.unsafe("commit")) as { command?: string });
    } catch (error) {
      if (isAnswer(error))
        await connection.unsafe("rollback").catch(() => this.#options.primary.dropConnections(connection));
      throw error;
    }
    return refused;
  }
}

/** Returns the milliseconds for which a group may still wait. A group without batches has only events, which are retried. */
const getRemainingMs = (group: readonly WaitingBatch[]): number | undefined =>
  group[0] && group[0].deadline - systemClock.monotonic();

/** Returns a group's shards without duplicates and sorted. All groups lock rows in the same order, so they cannot deadlock. */
const listShards = (group: readonly Pending[]): number[] =>
  [...new Set(group.map(({ part }) => part).filter((shard) => shard !== undefined))].sort((a, b) => a - b);

/** PostgreSQL answers COMMIT with ROLLBACK if the transaction had an error. */
const checkCommitted = ({ command }: { command?: string }): void => {
  if (command !== "COMMIT") throw new CommitError("unknown", `the database answered ${command} to COMMIT`);
};
