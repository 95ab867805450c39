// Runs dry runs outside of any mailbox: waits for a slot, lets the provisioner plan, and reports the result. A dry run creates no
// resources, so it can be repeated (rules DR-1 to DR-4).
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { describeTags } from "#src/provisioners/external/tags.ts";
import {
  ProvisionError,
  type Provisioner,
  type ProvisionRequest,
  WorkerLostError,
} from "#src/provisioners/provisioner.ts";
import { JobReport } from "../job/report.ts";
import { askWithRetries, beginWithRetries, isRetryable, isServerStopping } from "../job/report-retries.ts";
import type { AttemptRef } from "../job/state.ts";
import type { Directory } from "../runtime/directory.ts";
import type { JobQueue, Worker } from "../runtime/job-queue.ts";
import type { DryRunActor, DryRuns, StartedDryRun } from "./dry-run-actor.ts";

type Deps = {
  readonly clock: Clock;
  readonly jobs: JobQueue;
  readonly provisioners: ReadonlyMap<string, Provisioner>;
  readonly dryRuns: () => Directory<DryRunActor>;
  /** Adds the data that Terraform templates need to the request. */
  readonly equip: (request: ProvisionRequest) => Promise<ProvisionRequest>;
};

const HEARTBEAT_MS = 60_000;
const STAGE = "Planning";

export class DryRunRunner implements DryRuns {
  readonly #deps: Deps;
  /** Jobs that are being requeued. */
  readonly #requeued = new Set<string>();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Queues a job. If no worker can take it, it stays pending with a note in its log until a worker connects or the job ends. */
  submit({ job_id, created_at, tags, part }: Parameters<DryRuns["submit"]>[0]): void {
    const { jobs } = this.#deps;
    const isElsewhere = jobs.isElsewhere(tags);
    if (!isElsewhere && jobs.has(job_id) && !this.#requeued.delete(job_id)) return;
    if (!isElsewhere && jobs.workersFor(tags).length === 0) {
      const message = `No worker with the tags ${describeTags(tags)} is connected; the dry run waits for one.`;
      this.#makeReport(job_id, {}).addLines("provisioner_daemon", "info", "Waiting", message);
    }
    const run = (signal: AbortSignal, worker: Worker): Promise<void> => this.#runJob(job_id, signal, worker);
    const owner = { kind: "dry_run", id: job_id } as const;
    jobs.submit({ id: job_id, created_at, urgency: "person", tags, part, of: owner, run });
  }

  cancel(job_id: string): void {
    this.#deps.jobs.cancel(job_id, "the dry run was cancelled");
  }

  #makeReport(job_id: string, run: AttemptRef): JobReport {
    return new JobReport(this.#deps.clock, (text) => this.#deps.dryRuns().ask(job_id, "say", { ...run, ...text }));
  }

  /** Runs a job from start to end. Never rejects. */
  async #runJob(job_id: string, signal: AbortSignal, worker: Worker): Promise<void> {
    const runs = this.#deps.dryRuns();
    const { clock, jobs } = this.#deps;
    try {
      const started = await beginWithRetries(clock, signal, worker.id === jobs.worker.id, {
        here: () => runs.askHere(job_id, "startJob", { worker }),
        anywhere: () => runs.ask(job_id, "startJob", { worker }),
      });
      if (started !== "stale") await this.#work(job_id, started, worker, signal);
    } catch (error) {
      if (isServerStopping(signal)) return;
      log("templates").error("dry run {job_id} failed unexpectedly: {error}", { job_id, error });
      const failure = { error: "The dry run failed because of an internal error.", error_code: "" };
      await runs.ask(job_id, "failJob", failure).catch(() => {});
    }
  }

  /** Returns the provisioner that runs the job, which is `external` for a remote worker. */
  #requireProvisioner({ manifest }: ProvisionRequest, worker: Worker): Provisioner {
    const name = worker.id === this.#deps.jobs.worker.id ? manifest.provisioner : "external";
    const found = this.#deps.provisioners.get(name);
    if (found) return found;
    throw new ProvisionError(`This server does not run workspaces of the kind "${name}".`);
  }

  async #work(
    job_id: string,
    { request, attempt }: Exclude<StartedDryRun, "stale">,
    worker: Worker,
    signal: AbortSignal,
  ): Promise<void> {
    const { clock } = this.#deps;
    const runs = this.#deps.dryRuns();
    const run = { attempt };
    const report = this.#makeReport(job_id, run);
    const heartbeat = clock.every(HEARTBEAT_MS, () => {
      runs.ask(job_id, "touchJob", run).catch(() => {});
    });
    const started_at = clock.now();
    try {
      const { provisioner: name } = request.manifest;
      const provisioner = this.#requireProvisioner(request, worker);
      signal.throwIfAborted();
      const fullRequest = provisioner.plan && (await this.#deps.equip(request));
      const planned = fullRequest && (await provisioner.plan?.(fullRequest, report, signal));
      const resources = planned?.resources ?? request.manifest.resources;
      for (const { name: resource, type = `${name}_workspace`, agents = [] } of resources) {
        const agentNames = agents.map((agent) => agent.name).join(", ");
        report.log("info", STAGE, `Would create ${type} ${resource}${agentNames && ` with the agent ${agentNames}`}.`);
      }
      const timing = { action: "plan", resource: request.workspace.name, source: name, stage: "plan" };
      report.timing({ ...timing, started_at, ended_at: clock.now() });
      await report.whenSettled();
      const result = { ...run, ...(planned ? { resources: planned.resources } : {}) };
      await askWithRetries(clock, signal, () => runs.ask(job_id, "completeJob", result));
    } catch (error) {
      if (isServerStopping(signal)) return;
      if (signal.aborted) {
        await report.whenSettled();
        await askWithRetries(clock, signal, () => runs.ask(job_id, "completeJob", run));
      } else if (error instanceof WorkerLostError) {
        report.addLines("provisioner_daemon", "warn", "Handing over", error.message);
        await this.#requeue(job_id, { ...run, lost: error.message }, report, signal);
      } else if (isRetryable(error)) {
        const message = "The database did not answer. The dry run starts again.";
        report.addLines("provisioner_daemon", "warn", "Waiting", message);
        await this.#requeue(job_id, { ...run, moved: true }, report, signal);
      } else await this.#fail(job_id, run, error, report, signal);
    } finally {
      heartbeat.cancel();
    }
  }

  /** Requeues the job for any worker. The job fails after too many attempts. */
  async #requeue(
    job_id: string,
    reason: AttemptRef & { readonly lost?: string; readonly moved?: boolean },
    report: JobReport,
    signal: AbortSignal,
  ): Promise<void> {
    await report.whenSettled();
    this.#requeued.add(job_id);
    try {
      const requeue = () => this.#deps.dryRuns().ask(job_id, "requeueJob", reason);
      await askWithRetries(this.#deps.clock, signal, requeue);
    } finally {
      this.#requeued.delete(job_id);
    }
  }

  async #fail(job_id: string, run: AttemptRef, error: unknown, report: JobReport, signal: AbortSignal): Promise<void> {
    const isForPeople = error instanceof ProvisionError;
    if (!isForPeople) log("templates").error("the dry run {job_id} failed: {error}", { job_id, error });
    const message = isForPeople ? error.message : "The dry run failed because of an internal error.";
    report.addLines("provisioner_daemon", "error", "Failed", message);
    await report.whenSettled();
    const failure = { ...run, error: message, error_code: isForPeople ? error.code : "" };
    await askWithRetries(this.#deps.clock, signal, () => this.#deps.dryRuns().ask(job_id, "failJob", failure));
  }
}
