// The answering side of a link: runs another node's calls concurrently, as if they were made here.
import type { Clock } from "#base/clock.ts";
import { AppError, NotStartedError } from "#base/errors.ts";
import type { NodeListener } from "./connect.ts";
import { MAX_CONCURRENT_CALLS } from "./node-asking.ts";
import { requireFrameSize, runCall } from "./node-calls.ts";
import { formatWireError } from "./node-errors.ts";
import { type Frame, KIND } from "./node-frames.ts";
import { NodeWire, type WireSocket } from "./node-wire.ts";

/** Handles one kind of call; `from` is the name of the calling node. Throws errors that the caller should get. */
export type NodeService = (args: unknown, from: string) => Promise<unknown>;

export type AnsweringOptions = {
  readonly clock: Clock;
  readonly socket: WireSocket;
  /** The name of the calling node. */
  readonly from: string;
  service(name: string): NodeService | undefined;
  /** Called when the connection has ended. */
  over(): void;
};

export class NodeServer {
  readonly #options: AnsweringOptions;
  readonly #wire: NodeWire;
  #runningCount = 0;
  #isStopping = false;

  constructor(options: AnsweringOptions) {
    const { clock, socket, over } = options;
    this.#options = options;
    this.#wire = new NodeWire(clock, socket, { answers: true, frame: (frame) => this.#onFrame(frame), over });
  }

  /** Returns the listener for the socket. */
  get listener(): NodeListener {
    return this.#wire;
  }

  /** Starts no new calls. The other side then sends none, and closes once its calls are answered. */
  stopAccepting(): void {
    this.#isStopping = true;
    this.#wire.send(KIND.leaving, 0);
  }

  close(): void {
    this.#wire.close();
  }

  #onFrame({ kind, id, body }: Frame): void {
    // Frames of unknown kinds come from a newer version. They are ignored.
    if (kind === KIND.call) void this.#answer(id, body.toString());
  }

  async #answer(id: number, requested: string): Promise<void> {
    this.#runningCount += 1;
    try {
      const reply = await runCall(requested, (service, args) => this.#runService(service, args));
      this.#wire.send(KIND.answer, id, reply === undefined ? "" : requireFrameSize(JSON.stringify(reply)));
    } catch (error) {
      this.#wire.send(KIND.failure, id, formatWireError(error, "a call"));
    }
    this.#runningCount -= 1;
  }

  async #runService(name: string, args: unknown): Promise<unknown> {
    if (this.#isStopping) throw new NotStartedError("The node is stopping.");
    if (this.#runningCount > MAX_CONCURRENT_CALLS) throw new AppError("overloaded", "The node has too much under way.");
    const service = this.#options.service(name);
    // The service is not registered yet, or this node runs another version.
    if (!service) throw new NotStartedError("The node does not do this.");
    return service(args, this.#options.from);
  }
}
