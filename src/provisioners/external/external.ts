// Runs builds on external workers. The job queue has already reserved a slot of a connected worker for the build. A build of a lost worker
// returns to the queue (rules PV-9 to PV-11).
import type { Clock } from "#base/clock.ts";
import { pause } from "#base/retry.ts";
import type { Manifest } from "#schema/templates/manifest.ts";
import {
  type BuildReport,
  ProvisionError,
  type ProvisionedResources,
  type Provisioner,
  type ProvisionRequest,
  type ProvisionResult,
  type Report,
  WorkerLostError,
} from "../provisioner.ts";
import type { ImportRequest, TerraformImport } from "../terraform/import.ts";
import { listStateResources, parseSerial } from "../terraform/session.ts";
import type { ConnectedWorker, Outcome } from "./connected-worker.ts";
import { parseImport } from "./import-result.ts";
import type { Workers } from "./workers.ts";
import { findPlace, getInnerState, toPlacedState } from "./workspace-record.ts";

/** A worker that takes longer to end a canceled build is considered stuck. */
const CANCEL_TIMEOUT_MS = 60_000;
/** A worker kills Terraform only two minutes after a cancellation. */
const TERRAFORM_CANCEL_TIMEOUT_MS = 180_000;

const TERRAFORM = "terraform";

/** Returns the provisioner that the worker uses; undefined if the template does not name one. */
const getWorkerProvisioner = ({
  manifest,
}: ProvisionRequest): Exclude<Manifest["provisioner"], "external"> | undefined =>
  manifest.provisioner === TERRAFORM ? TERRAFORM : manifest.external?.provisioner;

export class ExternalProvisioner implements Provisioner {
  readonly name = "external";
  readonly #workers: Workers;
  readonly #clock: Clock;

  constructor(workers: Workers, clock: Clock) {
    this.#workers = workers;
    this.#clock = clock;
  }

  async run(request: ProvisionRequest, report: BuildReport, signal: AbortSignal): Promise<ProvisionResult> {
    const { provisioner, worker, outcome } = await this.#requireResult("job", request, report, signal);
    // Terraform's state is the whole result, so any worker can run the workspace's next build. The state needs no place.
    if (provisioner === TERRAFORM) {
      const isGone = request.transition === "delete" && outcome.state === null;
      if (!isGone && !isNewer(request, outcome.state)) throw new ProvisionError(NO_STATE_MESSAGE);
      return { state: outcome.state, ...(outcome.made ? { made: outcome.made } : {}) };
    }
    const place = worker.facts.places[provisioner] ?? findPlace(request.state);
    return { state: toPlacedState(place, outcome.state, request.transition === "delete") };
  }

  async plan(
    request: ProvisionRequest,
    report: Report,
    signal: AbortSignal,
  ): Promise<ProvisionedResources | undefined> {
    return (await this.#requireResult("plan", request, report, signal)).outcome.made;
  }

  /** Imports a Terraform template on a worker. Throws ProvisionError, WorkerLostError, or the signal's reason. */
  async importTemplate(request: ImportRequest, report: Report, signal: AbortSignal): Promise<TerraformImport> {
    const worker = this.#requireWorker(request.job_id);
    const job = { job_id: request.job_id, provisioner: TERRAFORM };
    const startWork = (): Promise<Outcome> => worker.importTemplate(request, TERRAFORM, report);
    const outcome = await this.#runOnWorker(worker, job, startWork, signal);
    return parseImport(requireDone(outcome, worker, signal).state);
  }

  /** Tells the worker that the build's result is stored, so that it can remove its copy. */
  releaseState(request: ProvisionRequest): void {
    const provisioner = getWorkerProvisioner(request);
    if (provisioner) this.#workers.findHolder(request.job_id)?.confirmResult(request, provisioner);
  }

  listRemaining(state: string | null): string[] {
    return listStateResources(state);
  }

  /** Runs a build or a dry run on its worker. Returns the successful outcome; throws otherwise. */
  async #requireResult(
    type: "job" | "plan",
    request: ProvisionRequest,
    report: Report,
    signal: AbortSignal,
  ): Promise<{ provisioner: string; worker: ConnectedWorker; outcome: DoneOutcome }> {
    const provisioner = getWorkerProvisioner(request);
    if (!provisioner) throw new ProvisionError("The template doesn't name the provisioner that a worker uses.");
    const worker = this.#requireWorker(request.job_id);
    const isTerraform = provisioner === TERRAFORM;
    const workerRequest: ProvisionRequest = isTerraform
      ? request
      : { ...request, manifest: { ...request.manifest, provisioner }, state: getInnerState(request.state) };
    const startWork = (): Promise<Outcome> => worker.runJob(workerRequest, provisioner, report, type);
    const job = { job_id: request.job_id, provisioner };
    const reported = await this.#runOnWorker(worker, job, startWork, signal);
    const outcome = requireDone(isTerraform ? ignoreStaleState(request, reported) : reported, worker, signal);
    return { provisioner, worker, outcome };
  }

  #requireWorker(job_id: string): ConnectedWorker {
    const worker = this.#workers.findHolder(job_id);
    if (!worker) throw new WorkerLostError("it disconnected before the request");
    return worker;
  }

  async #runOnWorker(
    worker: ConnectedWorker,
    { job_id, provisioner }: { readonly job_id: string; readonly provisioner: string },
    startWork: () => Promise<Outcome>,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const end = Promise.withResolvers<Outcome>();
    const cancelTimeoutMs = provisioner === TERRAFORM ? TERRAFORM_CANCEL_TIMEOUT_MS : CANCEL_TIMEOUT_MS;
    const cancel = (): void => {
      worker.cancel(job_id);
      // A stopping server does not wait for the outcome. The worker notices that the connection is closed.
      if ((signal.reason as Error | undefined)?.name === "ServerStopping") end.resolve({ kind: "canceled" });
      else void this.#closeIfStuck(worker, end.promise, cancelTimeoutMs);
    };
    signal.addEventListener("abort", cancel, { once: true });
    try {
      signal.throwIfAborted();
      startWork().then(end.resolve);
      return await end.promise;
    } finally {
      signal.removeEventListener("abort", cancel);
    }
  }

  async #closeIfStuck(worker: ConnectedWorker, outcome: Promise<Outcome>, timeoutMs: number): Promise<void> {
    const hasEnded = await Promise.race([outcome.then(() => true), pause(this.#clock, timeoutMs).then(() => false)]);
    if (hasEnded) return;
    this.#workers.removeWorker(worker, "it did not end a canceled build");
    worker.close("a canceled build did not end");
  }
}

const NO_STATE_MESSAGE = "The worker did not report the resulting state, so the previous state is kept.";

/** Returns true if the state may replace the state with which the build has started. */
const isNewer = ({ state: before }: ProvisionRequest, state: string | null): boolean => {
  if (state === null || state === before) return state === before;
  const [previous, current] = [before === null ? undefined : parseSerial(before), parseSerial(state)];
  return (
    current !== undefined &&
    (previous === undefined || (previous.lineage === current.lineage && previous.serial <= current.serial))
  );
};

/** Removes an invalid or outdated state from the outcome of a failed build. The build's actual result is then unknown. */
const ignoreStaleState = (request: ProvisionRequest, outcome: Outcome): Outcome => {
  if (!("left" in outcome) || !outcome.left || isNewer(request, outcome.left.state)) return outcome;
  const { left: _, ...withoutState } = outcome;
  return withoutState;
};

type DoneOutcome = Extract<Outcome, { kind: "done" }>;

/** Returns a successful outcome; throws otherwise. */
const requireDone = (outcome: Outcome, worker: ConnectedWorker, signal: AbortSignal): DoneOutcome => {
  // Even a canceled build may have created resources, so its state must be stored.
  if ("left" in outcome && outcome.left) {
    const { error, code } = outcome.kind === "failed" ? outcome : { error: "The build was cancelled.", code: "" };
    throw new ProvisionError(error, code, outcome.left);
  }
  signal.throwIfAborted();
  if (outcome.kind === "lost") throw new WorkerLostError(outcome.reason, worker.facts.name);
  if (outcome.kind === "failed") throw new ProvisionError(outcome.error, outcome.code);
  if (outcome.kind === "canceled") throw new ProvisionError("The worker abandoned the job.");
  return outcome;
};
