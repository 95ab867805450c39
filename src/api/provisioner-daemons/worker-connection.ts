// One worker's socket: registers the worker, forwards its messages, and unregisters it however the connection ends (rules PV-10, PV-12).
import { log } from "#base/log.ts";
import { findProvisionerKey } from "#db/templates/provisioners.ts";
import { findObsoleteStates } from "#domain/builds/unstored-states.ts";
import { NAME_IS_TAKEN, recordLastSeen } from "#domain/provisioners/daemon.ts";
import type { ConnectedWorker, WorkerFacts } from "#src/provisioners/external/connected-worker.ts";
import { readWorkerMessage, type WorkerMessage } from "#src/provisioners/external/protocol.ts";
import type { ApiContext } from "../context.ts";
import { CLOSE, type Socket, type SocketHandler } from "../http/socket.ts";

type KeptMessage = Extract<WorkerMessage, { type: "kept" }>;

export class WorkerConnection implements SocketHandler {
  readonly #ctx: ApiContext;
  readonly #facts: WorkerFacts;
  #worker: ConnectedWorker | undefined;

  constructor(ctx: ApiContext, facts: WorkerFacts) {
    this.#ctx = ctx;
    this.#facts = facts;
  }

  open(socket: Socket): void {
    // A worker with another key may have connected since the request was checked.
    const holder = this.#ctx.workers.find(this.#facts.id);
    if (holder && holder.facts.key_id !== this.#facts.key_id) {
      socket.close(CLOSE.policy, NAME_IS_TAKEN);
      return;
    }
    this.#worker = this.#ctx.workers.connect(this.#facts, {
      send: (text) => socket.send(text),
      close: (reason) => socket.close(CLOSE.policy, reason),
    });
    log("provisioners").info("worker {name} has connected", { name: this.#facts.name });
    // The key may have been deleted between authentication and the subscription.
    void this.#ctx.store.get(findProvisionerKey({ id: this.#facts.key_id })).then(
      (key) => key ?? this.#ctx.workers.closeKey(this.#facts.key_id),
      () => {},
    );
  }

  message(socket: Socket, data: string | Uint8Array): void {
    const message = readWorkerMessage(data);
    if (!message || !this.#worker) {
      socket.close(CLOSE.protocol, "invalid message");
      return;
    }
    this.#worker.handleMessage(message);
    if (message.type === "leaving") this.#ctx.workers.notifyChanged();
    if (message.type === "kept") void this.#confirmStored(this.#worker, message);
  }

  /** Never rejects. A worker that gets no answer keeps its results and asks again. */
  async #confirmStored(worker: ConnectedWorker, { provisioner, builds }: KeptMessage): Promise<void> {
    try {
      worker.confirmStored(provisioner, await findObsoleteStates(this.#ctx, builds, this.#facts.organization_id));
    } catch (error) {
      log("provisioners").warn("cannot look up the results that worker {name} stores: {error}", {
        name: this.#facts.name,
        error,
      });
    }
  }

  close(_socket: Socket, code: number, reason: string): void {
    const { workers } = this.#ctx;
    const { id, name } = this.#facts;
    if (!this.#worker) return;
    workers.removeWorker(this.#worker, "its connection has ended");
    log("provisioners").info("worker {name} disconnected: {code} {reason}", { name, code, reason });
    // Another connection with that name is open, so it is still online.
    if (workers.find(id)) return;
    void recordLastSeen(this.#ctx, this.#facts);
  }
}
