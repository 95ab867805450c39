// The actor of one dry run: a job that checks whether a workspace could be created from a template version, without creating one. It is the
// only writer of the job's row, and sends no messages to the version (rules DR-1 to DR-4).

import type { Clock } from "#base/clock.ts";
import type { Encryption } from "#base/encryption.ts";
import { AppError } from "#base/errors.ts";
import type { Topics } from "#base/topics.ts";
import type { Store } from "#db/engine/store.ts";
import { clearTimer, setTimer } from "#db/engine/timers.ts";
import { findJob, insertJob, insertJobLogs, type JobRow, updateJob } from "#db/workspaces/jobs.ts";
import type { ManifestResource } from "#schema/templates/manifest.ts";
import { isActive, toJobStatus } from "#schema/workspaces/job.ts";
import type { ProvisionRequest } from "#src/provisioners/provisioner.ts";
import { OutputDeduplicator } from "../job/dedupe-lines.ts";
import { appendLogs, presentJobLog } from "../job/logs.ts";
import type { JobOutput } from "../job/report.ts";
import { type AttemptRef, getReapTime, isCurrentAttempt, type JobCommand, transitionJob } from "../job/state.ts";
import { Actor, type Outcome } from "../runtime/actor.ts";
import type { Events } from "../runtime/events.ts";
import type { LateResult } from "./actor.ts";
import { createDryRunJob, type NewDryRun, planDryRun, presentPlan } from "./dry-run-plan.ts";
import { REAP } from "./state.ts";

export const DRY_RUN = "dry_run";

/** A dry run for the runner (actors/template-version/dry-run-runner.ts). */
export type SubmittedDryRun = {
  readonly job_id: string;
  readonly created_at: number;
  readonly tags: Readonly<Record<string, string>>;
  /** The version's `part`; unknown for older jobs. */
  readonly part: number | undefined;
};

export interface DryRuns {
  submit(job: SubmittedDryRun): void;
  cancel(job_id: string): void;
}

export type DryRunDeps = {
  /** Decrypts the values of template variables. */
  readonly encryption: Encryption;
  readonly store: Store;
  readonly clock: Clock;
  readonly topics: Topics<Events>;
  readonly runs: DryRuns;
  readonly accessUrl: () => URL;
};

export type StartedDryRun = ({ readonly request: ProvisionRequest } & AttemptRef) | "stale";

export class DryRunActor extends Actor<JobRow> {
  readonly #deps: DryRunDeps;
  readonly #deduplicator: OutputDeduplicator;

  /** `id`: the job's ID. */
  constructor(id: string, deps: DryRunDeps) {
    super(id, deps.store);
    this.#deps = deps;
    this.#deduplicator = new OutputDeduplicator(deps.store);
  }

  /** Returns undefined for a job that an older version of the server created. */
  protected toPart({ input }: JobRow): number | undefined {
    return input.part;
  }

  protected async load(): Promise<JobRow | undefined> {
    const job = await this.#deps.store.get(findJob({ id: this.id }));
    return job?.type === "template_version_dry_run" ? job : undefined;
  }

  protected override onUnconfirmedCommit(_: JobRow | undefined, job: JobRow | undefined): void {
    if (!job) return;
    const status = toJobStatus(job);
    this.#deps.topics.publish("job", job.id, { logs: [], done: !isActive(job) });
    if (status === "pending") this.#submit(job);
    if (status === "canceling") this.#deps.runs.cancel(job.id);
  }

  /** Creates the job, which begins when a worker is free. */
  create(input: NewDryRun): Promise<void> {
    return this.handleCreate(async () => {
      const { store } = this.#deps;
      const job = createDryRunJob(input, { id: this.id, key: await store.reserve("jobs", 1), now: this.#now() });
      return {
        state: job,
        writes: [insertJob(job), setTimer(DRY_RUN, this.id, REAP, getReapTime(job))],
        after: () => this.#submit(job),
        reply: undefined,
      };
    });
  }

  /** Assigns the job to a worker. Returns "stale" if it does not wait for a worker. */
  startJob({ worker }: { readonly worker: { id: string; name: string } }): Promise<StartedDryRun> {
    return this.handle<StartedDryRun>(async (job) => {
      // The commit of the first call is on disk but could not be confirmed, so the worker repeats the call.
      const isRepeated = toJobStatus(job) === "running" && job.worker_id === worker.id;
      if (!isRepeated && toJobStatus(job) !== "pending") return { state: job, reply: "stale" };
      const request = await planDryRun(this.#deps, job, this.#deps.accessUrl().href);
      if (isRepeated) return { state: job, reply: { request, attempt: job.attempts } };
      const started = { request, attempt: job.attempts + 1 };
      return this.#applyCommand<StartedDryRun>(job, { type: "start", now: this.#now(), worker }, started, "stale");
    });
  }

  /** Stores log lines and timings of the running job. */
  say({ attempt, id, logs, timings }: JobOutput & AttemptRef): Promise<LateResult> {
    return this.handle<LateResult>(async (job) => {
      if (!isActive(job) || !isCurrentAttempt(job, { attempt })) return { state: job, reply: "stale" };
      const first_id = await this.#deduplicator.reserveIds(job, { id, logs });
      if (first_id === "stored") return { state: job, reply: "done" };
      const added = appendLogs(job, logs, first_id, this.#now());
      const rows = added?.rows ?? [];
      const patch = { ...added?.patch, updated_at: this.#now(), timings: [...job.timings, ...timings] };
      return {
        state: { ...job, ...patch },
        writes: [updateJob(job.id, patch, { expect: 1 }), ...(rows.length > 0 ? [insertJobLogs(rows)] : [])],
        after: () => this.#deps.topics.publish("job", job.id, { logs: rows.map(presentJobLog), done: false }),
        reply: "done",
      };
    });
  }

  touchJob(run: AttemptRef): Promise<LateResult> {
    return this.#settleReport({ type: "touch", now: this.#now(), ...run });
  }

  /** Ends the job as succeeded or canceled. `resources`: the resources that a start would create, if the provisioner has planned them. */
  completeJob({
    resources,
    attempt,
  }: AttemptRef & { readonly resources?: readonly ManifestResource[] }): Promise<LateResult> {
    return this.handle((job) => {
      const planned = resources ? { input: { ...job.input, planned: presentPlan(job, resources) } } : {};
      const command = { type: "complete", now: this.#now(), attempt } as const;
      return this.#applyCommand<LateResult>(job, command, "done", "stale", planned);
    });
  }

  failJob(failure: AttemptRef & { readonly error: string; readonly error_code: string }): Promise<LateResult> {
    return this.#settleReport({ type: "fail", now: this.#now(), ...failure });
  }

  /** Requeues a job without a worker: the worker was lost, the server has restarted, or another node ran it (`moved`). */
  requeueJob({
    lost,
    moved,
    attempt,
  }: AttemptRef & { readonly lost?: string; readonly moved?: boolean }): Promise<LateResult> {
    return this.handle<LateResult>((job) => {
      const isPending = toJobStatus(job) === "pending" && isCurrentAttempt(job, { attempt });
      if (isPending) return { state: job, after: () => this.#submit(job), reply: "done" };
      const command = { type: "requeue", now: this.#now(), lost, moved, attempt } as const;
      return this.#applyCommand<LateResult>(job, command, "done", "stale");
    });
  }

  /** Handles the timer of the job: ends a silent job. */
  reap(_: Record<string, never>): Promise<LateResult> {
    return this.#settleReport({ type: "reap", now: this.#now() });
  }

  /** Rejects with 412 when the job has ended or was already canceled. */
  cancel(_: Record<string, never>): Promise<void> {
    return this.handle((job) => {
      const status = toJobStatus(job);
      if (status === "canceling") throw new AppError("precondition_failed", "The job is being cancelled already.");
      if (!isActive(job)) throw new AppError("precondition_failed", "The job has already ended.");
      return this.#applyCommand(job, { type: "cancel", now: this.#now() }, undefined, undefined);
    });
  }

  #settleReport(command: JobCommand): Promise<LateResult> {
    return this.handle((job) => this.#applyCommand<LateResult>(job, command, "done", "stale"));
  }

  #applyCommand<Reply>(
    job: JobRow,
    command: JobCommand,
    reply: Reply,
    stale: Reply,
    extra: Partial<Pick<JobRow, "input">> = {},
  ): Outcome<JobRow, Reply> {
    const changed = transitionJob(job, command);
    if (!changed) return { state: job, reply: stale };
    const patch = { ...changed, ...extra };
    const next = { ...job, ...patch };
    const hasEnded = !isActive(next);
    return {
      state: next,
      writes: [
        updateJob(job.id, patch, { expect: 1 }),
        hasEnded ? clearTimer(DRY_RUN, job.id, REAP) : setTimer(DRY_RUN, job.id, REAP, getReapTime(next)),
      ],
      after: () => {
        if (hasEnded) this.#deps.topics.publish("job", job.id, { logs: [], done: true });
        if (command.type === "cancel" || (command.type === "reap" && hasEnded)) this.#deps.runs.cancel(job.id);
        if (command.type === "requeue" && !hasEnded) this.#submit(next);
      },
      reply,
    };
  }

  #submit({ id: job_id, created_at, tags, input: { part } }: JobRow): void {
    this.#deps.runs.submit({ job_id, created_at, tags, part });
  }

  #now(): number {
    return this.#deps.clock.now();
  }
}
