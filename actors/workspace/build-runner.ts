// Runs builds outside of any mailbox: waits for a slot, gets the request from the workspace, runs the provisioner, and reports the result.
// Every report has the job's ID and attempt, so that a late report has no effect (rule WK-7).
import type { Clock } from "#base/clock.ts";
import type { Encryption } from "#base/encryption.ts";
import { failpoint } from "#base/failpoint.ts";
import { log } from "#base/log.ts";
import { TurnThrottle } from "#base/loop-pacing.ts";
import { beginSpan, getCurrentSpan, getErrorType, runInDetachedSpan, runInNewSpan } from "#base/spans.ts";
import { sealState } from "#db/workspaces/build-state.ts";
import { PREBUILDS_USER_ID } from "#schema/workspaces/prebuilds.ts";
import { describeTags } from "#src/provisioners/external/tags.ts";
import type { BuildReport } from "#src/provisioners/provisioner.ts";
import {
  ProvisionError,
  type Provisioner,
  type ProvisionRequest,
  type ProvisionResult,
  type Report,
  WorkerLostError,
} from "#src/provisioners/provisioner.ts";
import { JobReport } from "../job/report.ts";
import { askWithRetries, beginWithRetries, isRetryable, isServerStopping } from "../job/report-retries.ts";
import type { JobRunRef } from "../job/state.ts";
import type { Directory } from "../runtime/directory.ts";
import type { JobQueue, Worker } from "../runtime/job-queue.ts";
import type { Tags } from "../runtime/remote-queues.ts";
import type { StartedJob, WorkspaceActor } from "./actor.ts";
import type { Builds, SubmittedBuild } from "./effects.ts";
import type { LateResult } from "./outcome.ts";

/** Reports the output and the cost of a build to its workspace. */
class WorkspaceBuildReport extends JobReport implements BuildReport {
  readonly #charge: (daily_cost: number) => Promise<unknown>;

  constructor(
    clock: Clock,
    workspaces: Directory<WorkspaceActor>,
    workspace_id: string,
    run: JobRunRef,
    signal: AbortSignal,
    readonly yieldSlot: () => void,
  ) {
    super(clock, (text) => workspaces.ask(workspace_id, "say", { ...run, ...text }));
    const sendCost = (daily_cost: number) => workspaces.ask(workspace_id, "chargeJob", { ...run, daily_cost });
    this.#charge = (daily_cost) => askWithRetries(clock, signal, () => sendCost(daily_cost));
  }

  async charge(daily_cost: number): Promise<void> {
    await this.#charge(daily_cost);
  }
}

export type Provisioners = ReadonlyMap<string, Provisioner>;

export type WorkedBuild = { readonly workspace_id: string; readonly job_id: string };

type Deps = {
  readonly clock: Clock;
  readonly jobs: JobQueue;
  readonly provisioners: Provisioners;
  readonly workspaces: () => Directory<WorkspaceActor>;
  /** Encrypts the state for the next build. */
  readonly encryption: Encryption;
  /** Adds the data that Terraform templates need to the request. Called outside of any mailbox. */
  readonly equip: (request: ProvisionRequest, signal: AbortSignal) => Promise<ProvisionRequest>;
  /** Shuts down the workspace's agents gracefully (agent-shutdown.ts). Never rejects. */
  readonly shutDownAgents: (build: WorkedBuild, report: Report, signal: AbortSignal) => Promise<void>;
};

/** A build that did not succeed, its worker, and its remaining state. */
type UnfinishedBuild = { readonly request: ProvisionRequest; readonly worker: Worker; readonly state: string | null };

/** Tells the owner why their variables are missing. */
const WITHHELD_NOTICE =
  "This build was requested, or its schedule was set, by someone without access to the workspace, so it gets none of the owner's secrets, accounts or keys. They are available after the owner starts it from its page or with `slipway start`.";
const HEARTBEAT_MS = 60_000;

/** A job that has a slot. */
type ClaimedJob = { readonly job_id: string; readonly worker: Worker; readonly yieldSlot: () => void };

export class BuildRunner implements Builds {
  readonly #deps: Deps;
  /** Jobs that are being requeued, because their workers were lost. */
  readonly #requeued = new Set<string>();
  /** Throttles queueing of many jobs. */
  readonly #throttle = new TurnThrottle();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Queues a job. If no worker can take it, it stays pending with a note in its log until a worker connects or the job ends. */
  submit({ workspace_id, job_id, created_at, tags, urgency, part }: SubmittedBuild): void {
    const { clock, jobs } = this.#deps;
    if (!jobs.isElsewhere(tags)) {
      // The queue still has a job that is being requeued, because its previous run has not ended.
      if (jobs.has(job_id) && !this.#requeued.delete(job_id)) return;
      if (jobs.workersFor(tags).length === 0) this.#reportWaiting(workspace_id, job_id, tags);
    }
    const submittedAt = clock.now();
    const submittingSpan = getCurrentSpan();
    jobs.submit({
      of: { kind: "build", id: workspace_id },
      id: job_id,
      created_at,
      urgency,
      tags,
      part,
      run: (signal, worker, yieldSlot) => {
        const attributes = {
          "slipway.workspace.id": workspace_id,
          "slipway.job.id": job_id,
          "slipway.worker.built_in": worker.id === jobs.worker.id,
        };
        return runInDetachedSpan(
          () => ({ name: "build", began: submittedAt, attributes }),
          submittingSpan,
          () => {
            beginSpan({ name: "queue", began: submittedAt })?.end();
            return this.#runJob(workspace_id, { job_id, worker, yieldSlot }, signal);
          },
        );
      },
    });
  }

  #reportWaiting(workspace_id: string, job_id: string, tags: Tags): void {
    const workspaces = this.#deps.workspaces();
    const report = new JobReport(this.#deps.clock, (text) => workspaces.ask(workspace_id, "say", { job_id, ...text }));
    const message = `No worker with the tags ${describeTags(tags)} is connected; the build waits for one.`;
    report.addLines("provisioner_daemon", "info", "Waiting", message);
  }

  cancel(job_id: string): void {
    this.#deps.jobs.cancel(job_id, "the build was cancelled");
  }

  /** Runs one job from start to end. Never rejects. */
  async #runJob(workspace_id: string, claimed: ClaimedJob, signal: AbortSignal): Promise<void> {
    const { job_id, worker } = claimed;
    try {
      const plan = () => this.#start(workspace_id, job_id, signal, worker);
      const started = await runInNewSpan(() => ({ name: "plan" }), plan);
      if (started !== "stale") await this.#runBuild({ ...started, ...claimed }, workspace_id, signal);
    } catch (error) {
      // The job stays open on disk. The next start of the server resumes it, or the timer `reap` ends it.
      if (!isServerStopping(signal))
        log("builds").error("cannot report the result of job {job_id}: {error}", { job_id, error });
    }
  }

  async #start(workspace_id: string, job_id: string, signal: AbortSignal, worker: Worker): Promise<StartedJob> {
    const { clock, jobs } = this.#deps;
    const workspaces = this.#deps.workspaces();
    await this.#throttle.next();
    try {
      return await beginWithRetries(clock, signal, worker.id === jobs.worker.id, {
        here: () => workspaces.askHere(workspace_id, "startJob", { job_id, worker }),
        anywhere: () => workspaces.ask(workspace_id, "startJob", { job_id, worker }),
      });
    } catch (error) {
      if (signal.aborted) return "stale";
      await this.#fail(workspace_id, { job_id }, error, signal);
      return "stale";
    }
  }

  async #runBuild(
    started: Exclude<StartedJob, "stale"> & ClaimedJob,
    workspace_id: string,
    signal: AbortSignal,
  ): Promise<void> {
    const { request: requested, orphan, verbose, attempt, job_id, worker, yieldSlot } = started;
    const { clock, equip } = this.#deps;
    const run = { job_id, attempt };
    const workspaces = this.#deps.workspaces();
    getCurrentSpan()?.set({
      "slipway.build.transition": requested.transition,
      "slipway.build.number": requested.build_number,
      "slipway.provisioner": requested.manifest.provisioner,
      "slipway.job.attempt": attempt,
    });
    let request = verbose ? { ...requested, verbose } : requested;
    /** The state after the build, even if reporting it fails. */
    let left: { readonly state: string | null } | undefined;
    const report = new WorkspaceBuildReport(clock, workspaces, workspace_id, run, signal, yieldSlot);
    const heartbeat = clock.every(HEARTBEAT_MS, () => {
      workspaces.ask(workspace_id, "touchJob", run).catch(() => {});
    });
    try {
      if (verbose)
        for (const line of formatDetails(request)) report.addLines("provisioner_daemon", "debug", "Request", line);
      // Prebuilds have no owner yet.
      if (request.no_user_data && request.transition === "start" && request.owner.id !== PREBUILDS_USER_ID)
        report.addLines("provisioner_daemon", "warn", "Starting", WITHHELD_NOTICE);
      signal.throwIfAborted();
      if (request.transition !== "start" && !orphan) {
        const shutDownAgents = () => this.#deps.shutDownAgents({ workspace_id, job_id }, report, signal);
        await runInNewSpan(() => ({ name: "shut down agents" }), shutDownAgents);
      }
      signal.throwIfAborted();
      if (orphan) this.#reportRemaining(request, report);
      else
        request = await runInNewSpan(
          () => ({ name: "equip" }),
          () => equip(request, signal),
        );
      const apply = () => this.#requireProvisioner(request, worker).run(request, report, signal);
      const { state, made, kept_bytes }: ProvisionResult = orphan
        ? { state: null }
        : await runInNewSpan(() => ({ name: "apply" }), apply);
      left = { state };
      failpoint("build_pushed");
      await report.whenSettled();
      const args = {
        ...run,
        state: this.#seal(request, state),
        ...(made ? { made } : {}),
        ...(kept_bytes === undefined ? {} : { kept_bytes }),
      };
      const complete = () => workspaces.ask(workspace_id, "completeJob", args);
      this.#forgetState(request, worker, await askWithRetries(clock, signal, complete));
    } catch (error) {
      if (!isServerStopping(signal)) await this.#handleFailure(run, { request, worker, left }, error, report, signal);
    } finally {
      heartbeat.cancel();
    }
  }

  /** Requeues the job if it may succeed elsewhere or later. Otherwise ends it as canceled or failed. */
  async #handleFailure(
    run: JobRunRef,
    { request, worker, left: finalState }: Omit<UnfinishedBuild, "state"> & Pick<ProvisionError, "left">,
    error: unknown,
    report: JobReport,
    signal: AbortSignal,
  ): Promise<void> {
    const workspace_id = request.workspace.id;
    const requeue = async (stage: string, message: string, reason: { lost: string } | { moved: true }) => {
      report.addLines("provisioner_daemon", "warn", stage, message);
      await report.whenSettled();
      await this.#requeue(workspace_id, { ...run, ...reason }, signal);
    };
    if (error instanceof WorkerLostError && !signal.aborted)
      return requeue("Handing over", error.message, { lost: error.message });
    if (isRetryable(error) && !signal.aborted)
      return requeue("Waiting", "The database did not answer. The build starts again.", { moved: true });
    if (!signal.aborted) report.addLines("provisioner_daemon", "error", "Failed", formatFailure(error));
    await report.whenSettled();
    const left = finalState ?? (error instanceof ProvisionError ? error.left : undefined);
    const unfinished = { request, worker, state: left ? left.state : request.state };
    if (signal.aborted) await this.#completeCanceled(run, unfinished, left === undefined, signal);
    else await this.#fail(workspace_id, run, error, signal, left && unfinished);
  }

  /** Lists the workspace's resources in the log, because a delete with `orphan` does not remove them. */
  #reportRemaining({ manifest, state }: ProvisionRequest, report: JobReport): void {
    const resources = this.#deps.provisioners.get(manifest.provisioner)?.listRemaining?.(state) ?? [];
    for (const resource of resources) {
      const message = `${resource} is not removed and is no longer managed.`;
      report.addLines("provisioner_daemon", "warn", "Forgetting", message);
    }
  }

  #seal({ workspace, manifest: { provisioner } }: ProvisionRequest, state: string | null): string | null {
    return sealState(this.#deps.encryption, { workspace_id: workspace.id, provisioner }, state);
  }

  /** Lets the provisioner discard its copy of the state, unless the report was late and the state is not stored. */
  #forgetState(request: ProvisionRequest, worker: Worker, reply: LateResult): void {
    if (reply !== "done") return;
    failpoint("build_done");
    this.#requireProvisioner(request, worker).releaseState?.(request);
  }

  /** Requeues the job for any worker and with new tokens. The job fails after too many attempts. */
  async #requeue(
    workspace_id: string,
    args: Parameters<WorkspaceActor["requeueJob"]>[0],
    signal: AbortSignal,
  ): Promise<void> {
    const { job_id } = args;
    this.#requeued.add(job_id);
    try {
      const sendReport = () => this.#deps.workspaces().ask(workspace_id, "requeueJob", args);
      await askWithRetries(this.#deps.clock, signal, sendReport);
    } finally {
      this.#requeued.delete(job_id);
    }
  }

  /** Returns the provisioner that runs the job, which is `external` for a remote worker. */
  #requireProvisioner({ manifest }: ProvisionRequest, worker: Worker): Provisioner {
    const name = worker.id === this.#deps.jobs.worker.id ? manifest.provisioner : "external";
    const found = this.#deps.provisioners.get(name);
    if (found) return found;
    throw new ProvisionError(`This server does not run workspaces of the kind "${name}".`);
  }

  async #completeCanceled(
    run: JobRunRef,
    { request, worker, state }: UnfinishedBuild,
    unheard: boolean,
    signal: AbortSignal,
  ): Promise<void> {
    getCurrentSpan()?.set({ "slipway.build.outcome": "canceled" });
    const args = { ...run, state: this.#seal(request, state), unheard };
    const sendReport = () => this.#deps.workspaces().ask(request.workspace.id, "completeJob", args);
    const reply = await askWithRetries(this.#deps.clock, signal, sendReport);
    // A worker that has not reported the state must keep its copy.
    if (!unheard) this.#forgetState(request, worker, reply);
  }

  async #fail(
    workspace_id: string,
    run: JobRunRef,
    error: unknown,
    signal: AbortSignal,
    left?: UnfinishedBuild,
  ): Promise<void> {
    const { job_id } = run;
    const error_code = error instanceof ProvisionError ? error.code : "";
    getCurrentSpan()?.fail(error_code || getErrorType(error));
    if (!(error instanceof ProvisionError)) log("builds").error("job {job_id} failed: {error}", { job_id, error });
    const leftState = left ? { left: { state: this.#seal(left.request, left.state) } } : {};
    const args = { ...run, error: formatFailure(error), error_code, ...leftState };
    const sendReport = () => this.#deps.workspaces().ask(workspace_id, "failJob", args);
    const reply = await askWithRetries(this.#deps.clock, signal, sendReport);
    if (left) this.#forgetState(left.request, left.worker, reply);
  }
}

/** Returns lines for verbose logs. They contain no values, because some are secret. */
const formatDetails = ({ manifest, transition, build_number, parameters, state }: ProvisionRequest): string[] => [
  `Build ${build_number}, ${transition}, by the provisioner ${manifest.provisioner}.`,
  `Parameters: ${Object.keys(parameters).join(", ") || "none"}.`,
  `Resources: ${manifest.resources.map(({ name }) => name).join(", ")}.`,
  state === null ? "The previous build left no state." : `The previous build left ${state.length} characters of state.`,
];

/** Returns the message for people. Messages of other errors than ProvisionError are not for them. */
const formatFailure = (error: unknown): string =>
  error instanceof ProvisionError ? error.message : "The build failed because of an internal error.";
