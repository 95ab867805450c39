// The answering side of a link: runs another node's calls concurrently, as if they were made here.
import type { Clock } from "#base/clock.ts";
import { AppError, NotBegun } from "#base/errors.ts";
import type { NodeListener } from "./connect.ts";
import { MAX_CONCURRENT_CALLS } from "./node-asking.ts";
import { doCall, fitting } from "./node-calls.ts";
import { errorText } from "./node-errors.ts";
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
  /** Called when the other node sends no more calls. */
  over(): void;
};

export class Answering {
  readonly #options: AnsweringOptions;
  readonly #wire: NodeWire;
  #underWay = 0;
  #isLeaving = false;

  constructor(options: AnsweringOptions) {
    const { clock, socket, over } = options;
    this.#options = options;
    this.#wire = new NodeWire(clock, socket, { answers: true, frame: (frame) => this.#frame(frame), over });
  }

  /** Returns the listener for the socket. */
  get listener(): NodeListener {
    return this.#wire;
  }

  /** Starts no new calls. The other side then sends none, and closes once its calls are answered. */
  leave(): void {
    this.#isLeaving = true;
    this.#wire.send(KIND.leaving, 0);
  }

  close(): void {
    this.#wire.close();
  }

  #frame({ kind, id, body }: Frame): void {
    // Unknown kinds come from a newer version and concern nothing this one has offered.
    if (kind === KIND.call) void this.#answer(id, body.toString());
  }

  async #answer(id: number, asked: string): Promise<void> {
    this.#underWay += 1;
    try {
      const reply = await doCall(asked, (service, args) => this.#run(service, args));
      this.#wire.send(KIND.answer, id, reply === undefined ? "" : fitting(JSON.stringify(reply)));
    } catch (error) {
      this.#wire.send(KIND.failure, id, errorText(error, "a call"));
    }
    this.#underWay -= 1;
  }

  async #run(name: string, args: unknown): Promise<unknown> {
    if (this.#isLeaving) throw new NotBegun("The node is stopping.");
    if (this.#underWay > MAX_CONCURRENT_CALLS) throw new AppError("overloaded", "The node has too much under way.");
    const service = this.#options.service(name);
    // The service is registered later, or this node runs another version.
    if (!service) throw new NotBegun("The node does not do this.");
    return service(args, this.#options.from);
  }
}
