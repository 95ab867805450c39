// The worker process: connects to a server, takes jobs and runs them with its own provisioners. Reconnects forever. When a connection is
// lost, ends the jobs received over it, because the server reassigns them (rules PV-10 to PV-13).
import { type Clock, keepProcessAlive } from "#base/clock.ts";
import { readJson } from "#base/json/read.ts";
import { log } from "#base/log.ts";
import type { Random } from "#base/random.ts";
import { pause } from "#base/retry.ts";
import { type BuildReport, ProvisionError, type Provisioner, type ProvisionResult } from "../provisioner.ts";
import type { ImportRequest, TerraformImport } from "../terraform/import.ts";
import { readTerraformSource } from "../terraform/source.ts";
import { TerraformProvisioner } from "../terraform/terraform.ts";
import { type Chunk, type JobFile, splitIntoChunks } from "./chunked-data.ts";
import { formatImport } from "./import-result.ts";
import { FetchedFiles } from "./job-files.ts";
import { Outbox, OutputLimit } from "./outbox.ts";
import {
  HEARTBEAT_INTERVAL_MS,
  MAX_RETAINED,
  MAX_TIMINGS,
  readServerMessage,
  type ServerMessage,
  SILENCE_TIMEOUT_MS,
} from "./protocol.ts";

export type WorkerOptions = {
  /** The endpoint with its query: name, tags, provisioners. */
  readonly endpoint: URL;
  readonly key: string;
  readonly provisioners: ReadonlyMap<string, Provisioner>;
  /** A private folder for files of running jobs. */
  readonly files: string;
  readonly clock: Clock;
  readonly random: Random;
  /** Stops the worker and ends its jobs. */
  readonly signal: AbortSignal;
  /** Called each time the server has accepted the connection. */
  readonly connected?: (name: string) => void;
};

const INITIAL_RETRY_MS = 100;
const MAX_BACKOFF_MS = 10_000;
/** Maximum delay after a rejected key. The worker tries again, because a new key may not be known to all nodes yet. */
const MAX_REFUSED_BACKOFF_MS = 60_000;
/** After a connection that lasted this long, the delay starts again from its initial value. */
const STABLE_AFTER_MS = 5_000;
const REASON_TIMEOUT_MS = 10_000;
const MAX_REFUSAL_BYTES = 65_536;
const MAX_REASON_CHARS = 1_000;

/** An error of the API. */
type Refusal = {
  readonly message: string;
  readonly detail?: string;
  readonly validations?: readonly { readonly field: string; readonly detail: string }[];
};

/** Runs the worker until the signal aborts. Never rejects because of the server. */
export const runWorker = async (options: WorkerOptions): Promise<void> => {
  const { clock, random, signal } = options;
  const processHold = keepProcessAlive();
  try {
    for (let failures = 0; !signal.aborted; failures++) {
      const startedAt = clock.monotonic();
      const { reason, refused } = await new Connection(options).run();
      if (signal.aborted) return;
      if (!refused && clock.monotonic() - startedAt >= STABLE_AFTER_MS) failures = 0;
      const maxBackoffMs = refused ? MAX_REFUSED_BACKOFF_MS : MAX_BACKOFF_MS;
      const backoffMs = Math.min(maxBackoffMs, INITIAL_RETRY_MS * 2 ** Math.min(failures, 20));
      const delay_ms = Math.round(backoffMs * (0.5 + random() / 2));
      log("worker").warn("not connected, trying again in {wait} ms: {reason}", { wait: delay_ms, reason });
      await pause(clock, delay_ms, signal);
    }
  } finally {
    processHold.cancel();
  }
};

type WorkMessage = Extract<ServerMessage, { type: "job" | "plan" | "import" }>;
type ChunkMessage = Extract<ServerMessage, { type: "piece" }>;

class Connection {
  readonly #options: WorkerOptions;
  readonly #socket: WebSocket;
  readonly #outbox: Outbox;
  readonly #jobs = new Map<string, { abort: AbortController; done: Promise<void> }>();
  /** Functions that receive the requested chunk of a file, by job. */
  readonly #chunkWaiters = new Map<string, (chunk: ChunkMessage) => void>();
  /** Functions that receive the decision on the cost of a build, by job. */
  readonly #chargeWaiters = new Map<string, (refused: string | undefined) => void>();
  /** True if the server supports the message `kept`. */
  #confirmsStored = false;
  #lastMessageAt: number;

  constructor(options: WorkerOptions) {
    const { endpoint, key, clock } = options;
    this.#options = options;
    const credentials = { headers: { "Service-Session-Token": key }, perMessageDeflate: false };
    this.#socket = new WebSocket(endpoint, credentials as never);
    this.#outbox = new Outbox(this.#socket, clock);
    this.#lastMessageAt = clock.monotonic();
  }

  /** Runs one connection until it and all of its jobs have ended. Returns why it ended. */
  async run(): Promise<{ reason: string; refused: boolean }> {
    const { clock, signal } = this.#options;
    const socket = this.#socket;
    const endResult = Promise.withResolvers<{ reason: string; refused: boolean }>();
    let refusal = "";
    socket.onerror = (event) => {
      refusal = (event as ErrorEvent).message ?? "";
    };
    socket.onclose = ({ code, reason }) => {
      const status = /status code: (\d{3})/.exec(refusal)?.[1];
      if (status) void this.#explainRefusal(status).then(endResult.resolve);
      else endResult.resolve({ reason: reason || refusal || `the connection was closed (${code})`, refused: false });
    };
    socket.onmessage = ({ data }) => this.#handleMessage(data as string | Uint8Array);
    const heartbeat = clock.every(HEARTBEAT_INTERVAL_MS, () => {
      this.#outbox.sendNow({ type: "alive" });
      if (clock.monotonic() - this.#lastMessageAt < SILENCE_TIMEOUT_MS) return;
      endResult.resolve({ reason: "nothing was heard of the server", refused: false });
      socket.terminate();
    });
    const onAbort = (): void => {
      this.#outbox.sendNow({ type: "leaving" });
      socket.close(1000, "the worker stops");
      endResult.resolve({ reason: "stopped", refused: false });
    };
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    try {
      return await endResult.promise;
    } finally {
      heartbeat.cancel();
      signal.removeEventListener("abort", onAbort);
      // All jobs must end before the next connection, which may receive a job for the same workspace.
      for (const { abort } of this.#jobs.values()) abort.abort(new Error("the server is out of reach"));
      await Promise.all([...this.#jobs.values()].map(({ done }) => done));
    }
  }

  /** A refused WebSocket shows only the status, so a plain request asks for the reason. Never rejects. */
  async #explainRefusal(status: string): Promise<{ reason: string; refused: boolean }> {
    const { endpoint, key, clock, signal: stopped } = this.#options;
    const url = new URL(endpoint);
    url.protocol = endpoint.protocol === "wss:" ? "https:" : "http:";
    const refusal = { reason: `the server answered ${status}`, refused: status === "401" };
    const timeout = new AbortController();
    const timer = clock.after(REASON_TIMEOUT_MS, () => timeout.abort());
    try {
      const signal = AbortSignal.any([stopped, timeout.signal]);
      const response = await fetch(url, { headers: { "Service-Session-Token": key }, redirect: "manual", signal });
      if (String(response.status) !== status) return refusal;
      const {
        message,
        detail = "",
        validations = [],
      } = (await readJson(response, { maxBytes: MAX_REFUSAL_BYTES })) as Refusal;
      const fields = validations.map((one) => `"${one.field}" ${one.detail}`);
      const texts = [message, detail, ...fields].filter((text) => text !== "");
      return { ...refusal, reason: `${refusal.reason}: ${texts.join(" ")}`.slice(0, MAX_REASON_CHARS) };
    } catch {
      return refusal;
    } finally {
      timer.cancel();
    }
  }

  #handleMessage(data: string | Uint8Array): void {
    this.#lastMessageAt = this.#options.clock.monotonic();
    const message = readServerMessage(data);
    if (!message) {
      this.#socket.close(1002, "a message was not understood");
      return;
    }
    if (message.type === "welcome") {
      this.#confirmsStored = message.answers?.includes("kept") === true;
      this.#options.connected?.(message.name);
      void this.#reportRetained();
    }
    if (message.type === "cancel") this.#jobs.get(message.job_id)?.abort.abort(new Error("the build was cancelled"));
    if (message.type === "piece") this.#chunkWaiters.get(message.job_id)?.(message);
    if (message.type === "charged") this.#chargeWaiters.get(message.job_id)?.(message.refused);
    if (message.type === "forget") this.#options.provisioners.get(message.provisioner)?.releaseState?.(message.request);
    if (message.type === "stored")
      void this.#options.provisioners.get(message.provisioner)?.dropRetained?.(message.builds);
    if (message.type === "job" || message.type === "plan" || message.type === "import") this.#begin(message);
  }

  /** Reports results that the server has not confirmed. Never rejects. */
  async #reportRetained(): Promise<void> {
    if (!this.#confirmsStored) return;
    for (const [name, provisioner] of this.#options.provisioners) {
      try {
        const builds = (await provisioner.listRetained?.()) ?? [];
        if (builds.length === 0) continue;
        this.#outbox.enqueue({ type: "kept", provisioner: name, builds: builds.slice(0, MAX_RETAINED) });
      } catch (error) {
        log("worker").warn("the kept results of earlier builds cannot be read: {error}", { error });
      }
    }
  }

  #begin(message: WorkMessage): void {
    const { job_id } = message.request;
    if (this.#jobs.has(job_id)) return;
    void this.#reportRetained();
    const kind = { job: "build", plan: "dry run", import: "import" }[message.type];
    log("worker").info("{what} {job_id} begins", { what: kind, job_id });
    const abort = new AbortController();
    const done = this.#runJob(message, abort.signal).finally(() => {
      this.#jobs.delete(job_id);
      log("worker").info("{what} {job_id} has ended", { what: kind, job_id });
    });
    this.#jobs.set(job_id, { abort, done });
  }

  /** Never rejects. */
  async #runJob(message: WorkMessage, signal: AbortSignal): Promise<void> {
    const { job_id } = message.request;
    using files = new FetchedFiles(this.#options.files, job_id, (file, offset) =>
      this.#requestChunk(job_id, file, offset, signal),
    );
    try {
      const name = message.provisioner;
      const provisioner = this.#options.provisioners.get(name);
      if (!provisioner) throw new ProvisionError(`The worker does not run workspaces of the kind "${name}".`);
      if (message.type === "import") {
        const imported = await this.#import(provisioner, message.request, files, signal);
        this.#sendResult(job_id, formatImport(imported));
        return this.#outbox.enqueue({ type: "done", job_id, state: null, has_left: true });
      }
      await this.#runProvisioner(message, provisioner, files, signal);
    } catch (error) {
      const left = error instanceof ProvisionError ? error.left : undefined;
      if (left) this.#sendResult(job_id, left.state);
      const resultFlag = left ? { has_left: true } : {};
      if (signal.aborted) this.#outbox.enqueue({ type: "canceled", job_id, ...resultFlag });
      else if (error instanceof ProvisionError) {
        const message = error.message.slice(0, 65_536);
        this.#outbox.enqueue({ type: "failed", job_id, error: message, code: error.code, ...resultFlag });
      } else {
        log("worker").error("job {job_id} failed: {error}", { job_id, error });
        const message = "The build failed because of an internal error of the worker. See the worker's log.";
        this.#outbox.enqueue({ type: "failed", job_id, error: message, code: "" });
      }
    }
  }

  async #runProvisioner(
    { type, request: requested }: Exclude<WorkMessage, { type: "import" }>,
    provisioner: Provisioner,
    files: FetchedFiles,
    signal: AbortSignal,
  ): Promise<void> {
    const { job_id } = requested;
    const request = await files.complete(requested);
    const report = this.#createReport(job_id, signal);
    const { state, made }: ProvisionResult =
      type === "plan"
        ? { state: null, made: await provisioner.plan?.(request, report, signal) }
        : await provisioner.run(request, report, signal);
    const reported = made && { ...made, resources: [...made.resources], secrets: [...made.secrets] };
    const resources = reported ? { made: reported } : {};
    const sendsChunks = type === "job" && (made !== undefined || request.terraform !== undefined);
    if (sendsChunks) this.#sendResult(job_id, state);
    const result = sendsChunks ? { state: null, has_left: true } : { state };
    this.#outbox.enqueue({ type: "done", job_id, ...result, ...resources });
  }

  async #import(
    provisioner: Provisioner,
    requested: ImportRequest,
    files: FetchedFiles,
    signal: AbortSignal,
  ): Promise<TerraformImport> {
    if (!(provisioner instanceof TerraformProvisioner)) {
      throw new ProvisionError(`The worker doesn't import templates of the kind "${provisioner.name}".`);
    }
    const archive = await files.fetchArchive(requested.archive);
    const source = await readTerraformSource(archive);
    if (!source) throw new ProvisionError("The upload is not a Terraform template.");
    const report = this.#createReport(requested.job_id, signal);
    return provisioner.importTemplate({ ...requested, archive }, source, report, signal);
  }

  /** Sends the result in chunks. The caller then sends a message with `has_left`. */
  #sendResult(job_id: string, text: string | null): void {
    for (const chunk of splitIntoChunks(text ?? "")) this.#outbox.enqueue({ type: "left", job_id, text: chunk });
  }

  /** Requests a chunk of a file. A job requests only one chunk at a time. Rejects with the signal's reason. */
  #requestChunk(job_id: string, file: JobFile, offset: number, signal: AbortSignal): Promise<Chunk> {
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        this.#chunkWaiters.delete(job_id);
        reject(signal.reason);
      };
      if (signal.aborted) return onAbort();
      signal.addEventListener("abort", onAbort, { once: true });
      this.#chunkWaiters.set(job_id, (chunk) => {
        if (chunk.file !== file || chunk.offset !== offset) return;
        this.#chunkWaiters.delete(job_id);
        signal.removeEventListener("abort", onAbort);
        resolve(chunk);
      });
      this.#outbox.enqueue({ type: "fetch", job_id, file, offset });
    });
  }

  /** Asks the server whether the build may have this cost. Rejects if not, and with the signal's reason. */
  #requestCharge(job_id: string, daily_cost: number, signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const onAbort = (): void => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    this.#chargeWaiters.set(job_id, (refused) =>
      refused === undefined ? resolve() : reject(new ProvisionError(refused, "INSUFFICIENT_QUOTA")),
    );
    if (signal.aborted) onAbort();
    else this.#outbox.enqueue({ type: "charge", job_id, daily_cost });
    return promise.finally(() => {
      this.#chargeWaiters.delete(job_id);
      signal.removeEventListener("abort", onAbort);
    });
  }

  #createReport(job_id: string, signal: AbortSignal): BuildReport {
    const limit = new OutputLimit();
    let timingCount = 0;
    return {
      log: (level, stage, output) => {
        const line = limit.fitLine({ level, stage, output });
        if (line) this.#outbox.enqueue({ type: "log", job_id, lines: [line] });
      },
      timing: (timing) => {
        if (timingCount++ < MAX_TIMINGS) this.#outbox.enqueue({ type: "timing", job_id, timing });
      },
      charge: (daily_cost) => this.#requestCharge(job_id, daily_cost, signal),
    };
  }
}
