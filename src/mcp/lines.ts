// The transport of an MCP server that is a program: one JSON message per line (MCP "stdio"). Independent of processes: the caller writes
// the input and feeds the output. Rejects lines that are too long.

import type { Transport } from "@modelcontextprotocol/client";
import { parseJson } from "#base/json/read.ts";
import { LineBuffer } from "#base/line-buffer.ts";

type Message = Parameters<Transport["send"]>[0];

export type Program = {
  write(bytes: Uint8Array): Promise<void> | void;
  /** Ends the program. */
  end(): Promise<void> | void;
};

const MAX_LINE_BYTES = 16 * 1024 * 1024;

export class LineTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: Message) => void;
  readonly #start: (transport: LineTransport) => Promise<Program> | Program;
  #program: Program | undefined;
  readonly #decoder = new TextDecoder();
  readonly #buffer = new LineBuffer();
  #isClosed = false;
  #hasFailed = false;
  readonly #ended = Promise.withResolvers<string | undefined>();

  /** `start` starts the program; its output goes to `push`, its end to `onProgramEnd`. */
  constructor(start: (transport: LineTransport) => Promise<Program> | Program) {
    this.#start = start;
  }

  async start(): Promise<void> {
    this.#program = await this.#start(this);
  }

  async send(message: Message): Promise<void> {
    if (!this.#program || this.#isClosed) throw new Error("the program has ended");
    try {
      await this.#program.write(new TextEncoder().encode(`${JSON.stringify(message)}\n`));
    } catch (error) {
      this.#hasFailed = true;
      throw error;
    }
  }

  /** Returns why the program has ended, if known; undefined while it runs. */
  async reason(): Promise<string | undefined> {
    return this.#isClosed || this.#hasFailed ? this.#ended.promise : undefined;
  }

  async close(): Promise<void> {
    await this.#program?.end();
    this.#finish();
  }

  push(bytes: Uint8Array): void {
    const lines = this.#buffer.push(this.#decoder.decode(bytes, { stream: true })).split("\n");
    if (this.#buffer.length > MAX_LINE_BYTES) {
      this.onerror?.(new Error("a message is too long"));
      void this.close();
      return;
    }
    for (const line of lines) {
      if (line.trim() === "") continue;
      try {
        this.onmessage?.(parseJson(line) as Message);
      } catch (error) {
        this.onerror?.(error instanceof Error ? error : new Error(String(error)));
      }
    }
  }

  /** `reason`: a message with the program's last output. */
  onProgramEnd(reason?: string): void {
    this.#ended.resolve(reason);
    this.#finish();
  }

  #finish(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.onclose?.();
  }
}
