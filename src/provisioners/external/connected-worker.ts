// Represents one connected worker: its slots, its jobs, and the time of its last message. Forwards messages about a job to the caller that
// waits for the job, and fails all waiting callers when the worker is lost (rules PV-10 to PV-12).
import type { Clock } from "#base/clock.ts";
import {
  type BuildReport,
  ProvisionError,
  type ProvisionedResources,
  type ProvisionRequest,
  type Report,
  type RetainedBuild,
} from "../provisioner.ts";
import type { ImportRequest } from "../terraform/import.ts";
import { MAX_STATE_BYTES } from "../terraform/session.ts";
import { ChunkAssembler, type JobSource, omitFiles, readChunk, toSource } from "./chunked-data.ts";
import { MAX_IMPORT_CHARS } from "./import-result.ts";
import { MAX_JOB_BYTES, MAX_TIMINGS, type ServerMessage, type WorkerMessage } from "./protocol.ts";
import type { WorkerScope } from "./tags.ts";

export type WorkerFacts = WorkerScope & {
  readonly id: string;
  readonly name: string;
  readonly key_id: string;
  readonly slots: number;
};

/** A worker's socket. */
export interface WorkerLink {
  /** Returns false if the message could not be sent. */
  send(text: string): boolean;
  close(reason: string): void;
}

export type Outcome =
  | { readonly kind: "done"; readonly state: string | null; readonly made?: ProvisionedResources | undefined }
  | {
      readonly kind: "failed";
      readonly error: string;
      readonly code: string;
      readonly left?: RemainingState | undefined;
    }
  | { readonly kind: "canceled"; readonly left?: RemainingState | undefined }
  | { readonly kind: "lost"; readonly reason: string };

/** The state of a build that has failed or was canceled. */
type RemainingState = { readonly state: string | null };

/** The report of a job. Dry runs and imports do not report a cost. */
type WorkReport = Report & Partial<BuildReport>;
type DispatchMessage = Extract<ServerMessage, { type: "job" | "plan" | "import" }>;

type Job = {
  readonly source: JobSource;
  readonly report: WorkReport;
  readonly end: (outcome: Outcome) => void;
  /** The result that the worker has sent in chunks. */
  readonly result: ChunkAssembler;
  timingCount: number;
};

export class ConnectedWorker {
  readonly facts: WorkerFacts;
  readonly #link: WorkerLink;
  readonly #clock: Clock;
  readonly #jobs = new Map<string, Job>();
  /** Jobs that occupy a slot, including jobs that are not sent yet. */
  readonly #heldJobs = new Set<string>();
  #isLeaving = false;
  #hasDisconnected = false;
  #lastMessageAt: number;

  constructor(facts: WorkerFacts, link: WorkerLink, clock: Clock) {
    this.facts = facts;
    this.#link = link;
    this.#clock = clock;
    this.#lastMessageAt = clock.monotonic();
    this.#send({ type: "welcome", id: facts.id, name: facts.name, answers: ["kept"] });
  }

  get freeSlots(): number {
    return this.#isLeaving || this.#hasDisconnected ? 0 : this.facts.slots - this.#heldJobs.size;
  }

  get jobs(): readonly string[] {
    return [...this.#heldJobs];
  }

  /** Time since the last message. */
  get silence_ms(): number {
    return this.#clock.monotonic() - this.#lastMessageAt;
  }

  hold(job_id: string): void {
    this.#heldJobs.add(job_id);
  }

  release(job_id: string): boolean {
    return this.#heldJobs.delete(job_id);
  }

  /** Sends the job, or a dry run of it, and resolves with the outcome. */
  runJob(
    request: ProvisionRequest,
    provisioner: string,
    report: WorkReport,
    type: "job" | "plan" = "job",
  ): Promise<Outcome> {
    const message: DispatchMessage = { type, provisioner, request: omitFiles(request) };
    return this.#dispatch(message, toSource(request), report, MAX_STATE_BYTES);
  }

  /** Lets the worker import a template. The state of a successful outcome is the text that `formatImport` returns. */
  importTemplate(request: ImportRequest, provisioner: string, report: Report): Promise<Outcome> {
    const { path, mimetype } = request.archive;
    const message: DispatchMessage = {
      type: "import",
      provisioner,
      request: { ...request, archive: { path: "", mimetype } },
    };
    return this.#dispatch(message, { archive: path }, report, MAX_IMPORT_CHARS);
  }

  #dispatch(message: DispatchMessage, source: JobSource, report: WorkReport, maxChars: number): Promise<Outcome> {
    const text = JSON.stringify(message);
    if (Buffer.byteLength(text) > MAX_JOB_BYTES) {
      const error = "The template is too large to be sent to a worker.";
      return Promise.resolve({ kind: "failed", error, code: "" });
    }
    if (this.#hasDisconnected) return Promise.resolve({ kind: "lost", reason: "it disconnected before the request" });
    return new Promise((end) => {
      this.#jobs.set(message.request.job_id, {
        source,
        report,
        end,
        result: new ChunkAssembler(maxChars),
        timingCount: 0,
      });
      if (!this.#link.send(text)) this.#link.close("the job could not be sent");
    });
  }

  cancel(job_id: string): void {
    if (this.#jobs.has(job_id)) this.#send({ type: "cancel", job_id });
  }

  /** Tells the worker that the job's result is stored. */
  confirmResult(request: ProvisionRequest, provisioner: string): void {
    // The worker needs only the job's identity, not its values.
    const { terraform: _, ...identity } = request;
    this.#send({ type: "forget", provisioner, request: { ...identity, state: null, agents: [], parameters: {} } });
  }

  /** Tells the worker which of its retained builds are stored. */
  confirmStored(provisioner: string, builds: readonly RetainedBuild[]): void {
    if (builds.length > 0) this.#send({ type: "stored", provisioner, builds });
  }

  /** Handles a message of the worker. Ignores late messages about jobs that have ended. */
  handleMessage(message: WorkerMessage): void {
    this.#lastMessageAt = this.#clock.monotonic();
    if (message.type === "alive") this.#send({ type: "alive" });
    else if (message.type === "leaving") this.#isLeaving = true;
    else if (message.type !== "kept") this.#handleJobMessage(message);
  }

  #handleJobMessage(message: Exclude<WorkerMessage, { type: "alive" | "leaving" | "kept" }>): void {
    const job = this.#jobs.get(message.job_id);
    if (!job) return;
    switch (message.type) {
      case "log":
        for (const { level, stage, output } of message.lines) job.report.log(level, stage, output);
        return;
      case "timing":
        if (job.timingCount++ < MAX_TIMINGS) job.report.timing(message.timing);
        return;
      case "fetch": {
        const { job_id, file, offset } = message;
        const chunk = readChunk(job.source, file, offset);
        if (chunk) this.#send({ type: "piece", job_id, file, offset, ...chunk });
        else this.#link.close("a file was asked for that the job does not have");
        return;
      }
      case "charge":
        this.#charge(message.job_id, job.report, message.daily_cost);
        return;
      case "left":
        if (!job.result.add(message.text)) this.#link.close("a build leaves more than a state may have");
        return;
      case "done":
        this.#end(message.job_id, {
          kind: "done",
          state: message.has_left ? job.result.text : message.state,
          made: message.made as ProvisionedResources | undefined,
        });
        return;
      case "failed":
        this.#end(message.job_id, {
          kind: "failed",
          error: message.error,
          code: message.code,
          left: message.has_left ? { state: job.result.text } : undefined,
        });
        return;
      case "canceled":
        this.#end(message.job_id, {
          kind: "canceled",
          left: message.has_left ? { state: job.result.text } : undefined,
        });
    }
  }

  #charge(job_id: string, report: Partial<BuildReport>, daily_cost: number): void {
    (report.charge?.(daily_cost) ?? Promise.resolve()).then(
      () => this.#send({ type: "charged", job_id }),
      (error: unknown) => {
        const reason = error instanceof ProvisionError ? error.message : "The cost of the build could not be noted.";
        this.#send({ type: "charged", job_id, refused: reason.slice(0, 4_096) });
      },
    );
  }

  /** Fails all jobs of a disconnected worker with the reason. */
  failJobs(reason: string): void {
    this.#hasDisconnected = true;
    for (const job_id of [...this.#jobs.keys()]) this.#end(job_id, { kind: "lost", reason });
  }

  close(reason: string): void {
    this.#link.close(reason);
  }

  #end(job_id: string, outcome: Outcome): void {
    const job = this.#jobs.get(job_id);
    this.#jobs.delete(job_id);
    job?.end(outcome);
  }

  #send(message: ServerMessage): void {
    this.#link.send(JSON.stringify(message));
  }
}
