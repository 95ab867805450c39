// Runs a command without a terminal: forwards standard input and output and returns the command's exit code. Printed output cannot be
// retracted, so a broken connection is an error.
import { pause } from "#base/retry.ts";
import type { ClientSocket } from "#src/client.ts";
import { VerbFailure } from "../../failure.ts";
import { getStreams, type Streams } from "../../streams.ts";
import type { VerbInput } from "../../verb.ts";
import { openSocket, type Remote } from "../remote.ts";
import { BATCH_BYTES, createMarks, encodeBatch, INPUT_END, MarkReader, toPipeCommand } from "./shell-command.ts";
import { describeClose, toTerminalPath } from "./shell-socket.ts";
import type { TerminalTarget } from "./shell-target.ts";

/** Maximum number of unacknowledged batches. */
const MAX_UNACKNOWLEDGED = 4;
const CLOSE_TIMEOUT_MS = 1_000;
const CTRL_C = "\u0003";

/** Returns the command's exit code. Throws VerbFailure if it is unknown. */
export const runPiped = async (
  input: VerbInput,
  { client, onInterrupt }: Pick<Remote, "client" | "onInterrupt">,
  target: TerminalTarget,
): Promise<number> => {
  const streams = getStreams(input);
  const marks = createMarks(target.id);
  const reader = new MarkReader(marks);
  // A wide terminal, so that programs do not wrap lines.
  const query = { ...target.query, width: "500", height: "50", command: toPipeCommand(target.command, marks) };
  using socket = await openSocket(client, toTerminalPath(target, query));
  onInterrupt(async () => {
    type(socket, CTRL_C);
    socket.close();
    await socket.closed;
  });
  const feed = new Feed(socket, streams);
  for await (const message of socket) {
    if (typeof message === "string") continue;
    const { output, isReady, consumedCount, exit } = reader.read(message);
    await streams.write(output);
    if (isReady) feed.start();
    feed.acknowledge(consumedCount);
    if (exit === undefined) continue;
    feed.end();
    // The terminal closes automatically unless the command left processes running.
    await Promise.race([socket.closed, pause(input.clock, CLOSE_TIMEOUT_MS)]);
    return exit;
  }
  await streams.write(reader.takeHeld());
  throw new VerbFailure(describeClose(await socket.closed, target));
};

const type = (socket: ClientSocket, data: string): void => socket.send(JSON.stringify({ data }));

/** Forwards standard input with backpressure. */
class Feed {
  readonly #socket: ClientSocket;
  readonly #streams: Streams;
  #unacknowledgedCount = 0;
  #wake: (() => void) | undefined;
  #isEnded = false;

  constructor(socket: ClientSocket, streams: Streams) {
    this.#socket = socket;
    this.#streams = streams;
  }

  start(): void {
    // Keystrokes are not forwarded to a command whose output goes elsewhere.
    const forwarding = this.#streams.inputIsTerminal ? Promise.resolve() : this.#forward();
    const end = (): void => this.#send(INPUT_END);
    forwarding.then(end, end);
  }

  acknowledge(batches: number): void {
    this.#unacknowledgedCount -= batches;
    this.#wake?.();
  }

  end(): void {
    this.#send(INPUT_END);
    this.#isEnded = true;
    this.#wake?.();
  }

  async #forward(): Promise<void> {
    for await (const chunk of this.#streams.input()) {
      for (let at = 0; at < chunk.byteLength; at += BATCH_BYTES) {
        while (this.#unacknowledgedCount >= MAX_UNACKNOWLEDGED && !this.#isEnded) await this.#waitForAcknowledgement();
        if (this.#isEnded) return;
        this.#unacknowledgedCount += 1;
        this.#send(encodeBatch(chunk.subarray(at, at + BATCH_BYTES)));
      }
    }
  }

  #send(data: string): void {
    if (!this.#isEnded) type(this.#socket, data);
  }

  #waitForAcknowledgement(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}
