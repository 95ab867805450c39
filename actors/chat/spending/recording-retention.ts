// Deletes recorded prompts and answers of gateway calls after their retention period, and the oldest ones when the total is too large, even
// if recording is off (rules GW-15, GW-17).
import { log } from "#base/log.ts";
import { runOutsideRequest } from "#base/network/current-request.ts";
import { deleteOldRecordings, findOldRecording, findRecordingBeyond } from "#db/chats/recordings.ts";
import type { Store } from "#db/engine/store.ts";
import { readGatewaySettings } from "#db/models/gateway.ts";
import { type Chore, PeriodicChore, type PeriodicDeps } from "../../runtime/chore.ts";

const RUN_INTERVAL_MS = 600_000;
const DAY_MS = 86_400_000;
const MIB = 1024 ** 2;
/**
 * How often a node checks the total size while it records as many bytes as the limit. Large totals are thus not summed constantly.
 */
const CHECKS_PER_LIMIT = 64;
const MIN_CHECK_BYTES = MIB / 4;

type Deps = Pick<PeriodicDeps, "clock"> & { readonly store: Store };

export class RecordingRetention implements Chore {
  readonly runsOn = "one node";
  readonly #store: Store;
  readonly #periodic: PeriodicChore;
  /** Bytes that this node has recorded since its last check, and the number after which it checks. */
  #bytesSinceCheck = 0;
  #checkAfter = MIN_CHECK_BYTES;
  #isStopped = false;
  #checking: Promise<void> | undefined;

  constructor({ store, clock }: Deps) {
    this.#store = store;
    this.#periodic = new PeriodicChore({
      clock,
      every_ms: RUN_INTERVAL_MS,
      work: async (now, isStopped) => {
        await this.#deleteExpired(now, isStopped);
        await this.#makeRoom(isStopped);
      },
      failed: warn,
    });
  }

  sweep(mayContinue?: () => boolean): void {
    this.#periodic.sweep(mayContinue);
  }

  /** Counts stored bytes, and frees space after enough of them. Each node does this for its own recordings. */
  onStored(bytes: number): void {
    this.#bytesSinceCheck += bytes;
    if (this.#bytesSinceCheck < this.#checkAfter || this.#checking || this.#isStopped) return;
    // Runs in the background, so that the call does not wait.
    this.#checking = runOutsideRequest(() => this.#makeRoom(() => this.#isStopped))
      .catch(warn)
      .finally(() => {
        this.#checking = undefined;
      });
  }

  async whenIdle(): Promise<void> {
    await Promise.all([this.#periodic.whenIdle(), this.#checking]);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.all([this.#periodic.stop(), this.#checking]);
  }

  async #deleteExpired(now: number, isStopped: () => boolean): Promise<void> {
    const { recording } = await readGatewaySettings(this.#store);
    const old = { before: now - recording.days * DAY_MS };
    while (!isStopped() && (await this.#store.get(findOldRecording(old))))
      await this.#store.commit([deleteOldRecordings(old)], { of: "deployment" });
  }

  async #makeRoom(isStopped: () => boolean): Promise<void> {
    this.#bytesSinceCheck = 0;
    const { recording } = await readGatewaySettings(this.#store);
    const max_bytes = recording.max_mib * MIB;
    this.#checkAfter = Math.max(MIN_CHECK_BYTES, max_bytes / CHECKS_PER_LIMIT);
    const [firstExcess] = await this.#store.scan(findRecordingBeyond({ max_bytes }));
    if (typeof firstExcess?.created_at !== "number") return;
    const old = { before: firstExcess.created_at + 1 };
    while (!isStopped() && (await this.#store.get(findOldRecording(old))))
      await this.#store.commit([deleteOldRecordings(old)]);
  }
}

const warn = (error: unknown): void =>
  log("models").warn("cannot delete old recordings of model calls: {error}", { error });
