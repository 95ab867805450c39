// The standard input and output of a coding agent in a workspace, as streams, and the agent's requests to its MCP server. Bytes are read
// and written by offset, so that a request can be repeated after a connection error without losing or duplicating bytes.
import type { Clock } from "#base/clock.ts";
import { JsonCost } from "#base/json/cost.ts";
import { pause, restAfter } from "#base/retry.ts";
import type { AgentProgramOutput, StartAgentProgram } from "#schema/agents/agent-program.ts";

/**
 * Maximum number of values of a message. The limit on bytes is not enough: parsing, checking and comparing 28 MB of small list items takes
 * seconds of the event loop. Real agents send a few hundred values; the arguments of a call are shown up to 20,000 values.
 */
const MAX_MESSAGE_VALUES = 50_000;

const NEWLINE = 0x0a;

class TooCostlyError extends Error {}

/** Counts the values of each line of a stream of JSON lines. */
class LineCost {
  readonly #cost = new JsonCost({ maxValues: MAX_MESSAGE_VALUES });

  /** Counts the next bytes of the stream. Throws `TooCostlyError` when a line is too expensive to parse. */
  count(bytes: Uint8Array): void {
    for (let start = 0; start < bytes.length; ) {
      const end = bytes.indexOf(NEWLINE, start);
      const problem = this.#cost.count(bytes.subarray(start, end < 0 ? bytes.length : end));
      if (problem !== undefined) throw new TooCostlyError(`It sent a message that ${problem}`);
      if (end < 0) return;
      this.#cost.reset();
      start = end + 1;
    }
  }
}

/** Sends a request to the daemon. Rejects with a message if the workspace is unreachable. */
export type CallDaemon = <T>(call: {
  readonly path: string;
  readonly method: "GET" | "POST";
  readonly signal?: AbortSignal;
  readonly patient?: boolean;
  readonly ends?: boolean;
  readonly json?: unknown;
  readonly body?: Uint8Array;
}) => Promise<T>;

/** The environment of the running program. `mcp_url` is missing if the daemon is too old to have an MCP server. */
type StartInfo = { readonly directory: string; readonly mcp_url?: string | undefined };

/** Answers the program's JSON-RPC requests as its MCP server. Never rejects. */
type AnswerMcp = (message: string) => Promise<string>;

const LONG_POLL_MS = 25_000;
/** Maximum number of bytes processed per turn of the event loop, so that other work is not delayed. */
const PIECE_BYTES = 64 * 1024;
/** Pause between reads of the output, because programs write word by word. */
const POLL_INTERVAL_MS = 20;

export class ProgramStdio {
  readonly #callDaemon: CallDaemon;
  readonly #clock: Clock;
  readonly #path: string;
  readonly #stopping = new AbortController();
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable: WritableStream<Uint8Array>;
  readonly #answerMcp: AnswerMcp;
  readonly #started = Promise.withResolvers<StartInfo>();
  readonly #ended = Promise.withResolvers<string>();
  readonly #lineCost = new LineCost();
  #sentBytes = 0;
  #onWritten: (() => void)[] = [];
  #excess: string | undefined;

  private constructor(callDaemon: CallDaemon, clock: Clock, id: string, answerMcp: AnswerMcp) {
    this.#callDaemon = callDaemon;
    this.#answerMcp = answerMcp;
    this.#clock = clock;
    this.#path = `/coding-agents/${id}`;
    this.#started.promise.catch(() => {});
    this.readable = new ReadableStream<Uint8Array>({
      start: (controller) => {
        void this.#read(controller);
      },
      // Nothing may be added to the stream after its reader has closed it.
      cancel: () => this.#stopping.abort(),
    });
    this.writable = new WritableStream<Uint8Array>({ write: (bytes) => this.#write(bytes) });
  }

  /** Starts the program; `started` resolves when it runs. Rejects if the workspace is unreachable, or once the signal fires. */
  static async start(
    callDaemon: CallDaemon,
    clock: Clock,
    json: StartAgentProgram,
    answerMcp: AnswerMcp,
    signal: AbortSignal,
  ): Promise<ProgramStdio> {
    await callDaemon({ method: "POST", path: "/coding-agents/start", json, patient: true, signal });
    return new ProgramStdio(callDaemon, clock, json.id, answerMcp);
  }

  /** Resolves with the program's working folder once it runs. Rejects if it could not be installed or started. */
  get started(): Promise<StartInfo> {
    return this.#started.promise;
  }

  /** Resolves with the reason when the program has ended or has become unreachable. */
  get ended(): Promise<string> {
    return this.#ended.promise;
  }

  /** Resolves when the workspace has received the next message that is written, or when the program has ended. */
  waitUntilWritten(): Promise<void> {
    const written = new Promise<void>((resolve) => this.#onWritten.push(resolve));
    return Promise.race([written, this.#ended.promise.then(() => {})]);
  }

  /** Describes the limit that a message of the program exceeded; undefined if the program was not ended for that. */
  get excess(): string | undefined {
    return this.#excess;
  }

  /** Kills the program and its child processes. Does not wait for the workspace. */
  end(): void {
    this.#stopping.abort();
    void this.#callDaemon({ method: "POST", path: `${this.#path}/end`, json: {}, ends: true }).catch(() => {});
  }

  async #read(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    const encoder = new TextEncoder();
    const { signal } = this.#stopping;
    let after = 0;
    let state = "";
    let received = 0;
    try {
      while (!signal.aborted) {
        const path = `${this.#path}/output?after=${after}&state=${state}&heard=${received}&wait_ms=${LONG_POLL_MS}`;
        const answer = await this.#callDaemon<AgentProgramOutput>({ method: "GET", path, patient: true, signal });
        if (answer.state === "running") this.#started.resolve(answer);
        after = answer.next;
        state = answer.state;
        if (signal.aborted) break;
        for (const { number, message } of answer.mcp_requests ?? []) {
          received = Math.max(received, number);
          void this.#answer(number, message);
        }
        const bytes = encoder.encode(answer.output);
        for (let start = 0; start < bytes.byteLength && !signal.aborted; start += PIECE_BYTES) {
          const startedAt = this.#clock.monotonic();
          const piece = bytes.subarray(start, start + PIECE_BYTES);
          this.#lineCost.count(piece);
          controller.enqueue(piece);
          await restAfter(this.#clock, startedAt, signal);
        }
        if (signal.aborted) break;
        if (answer.state === "ended" && answer.output === "") return this.#finish(controller, describeExit(answer));
        if (answer.output !== "") await pause(this.#clock, POLL_INTERVAL_MS, signal);
      }
      this.#finish(controller, "The agent was stopped.");
    } catch (error) {
      if (error instanceof TooCostlyError) this.#excess = error.message;
      this.#finish(controller, signal.aborted ? "The agent was stopped." : (error as Error).message);
      if (this.#excess !== undefined) this.end();
    }
  }

  async #answer(number: number, message: string): Promise<void> {
    const body = new TextEncoder().encode(await this.#answerMcp(message));
    const path = `${this.#path}/answer?number=${number}`;
    // A program that has ended does not wait for an answer.
    await this.#callDaemon({ method: "POST", path, body, patient: true, signal: this.#stopping.signal }).catch(
      () => {},
    );
  }

  #finish(controller: ReadableStreamDefaultController<Uint8Array>, reason: string): void {
    this.#started.reject(new Error(reason));
    this.#ended.resolve(reason);
    if (!this.#stopping.signal.aborted) controller.close();
  }

  async #write(bytes: Uint8Array): Promise<void> {
    const path = `${this.#path}/input?at=${this.#sentBytes}`;
    this.#sentBytes += bytes.byteLength;
    const onWritten = this.#onWritten.splice(0);
    await this.#callDaemon({ method: "POST", path, body: bytes, patient: true, signal: this.#stopping.signal });
    for (const written of onWritten) written();
  }
}

const describeExit = ({ exit_code, error_output }: AgentProgramOutput): string => {
  const errorText = error_output.trim();
  if (exit_code === null) return errorText === "" ? "The agent could not be started." : errorText;
  return `The agent exited with code ${exit_code}.${errorText === "" ? "" : `\n${errorText}`}`;
};
