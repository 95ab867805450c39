// An agent that writes log lines over REST: it sends the next batch only when the previous one is acknowledged, and retries a batch with an
// unknown result under the same key. So it sends a sequence of lines, and the stored lines must be a prefix of that sequence.
import type { Client } from "#src/client.ts";
import { type CallResult, call, PAUSE_MS } from "./calls.ts";

const PATH = "/api/v2/workspaceagents/me/logs";
/** Characters of one to four bytes, so that the numbers of bytes and characters differ. */
const FILL_CHARACTERS = ["x", "é", "漢", "🚀"];

export type WriterOptions = {
  name: string;
  agent_id: string;
  /** A client with the agent's token. */
  client: Client;
  source_ids: readonly string[];
  random: () => number;
  /** Called after each acknowledged batch. */
  onAcknowledged?(): void;
};

export class LogWriter {
  readonly options: WriterOptions;
  /** All lines ever sent, in order. */
  readonly sent: { output: string; source_id: string }[] = [];
  /** The line counts at the ends of batches. */
  readonly borders = new Set<number>([0]);
  /** Number of acknowledged lines. */
  acknowledged = 0;
  batches = 0;
  /** Calls with an unknown result. */
  unknown = 0;
  /** Calls that the server answered with 5xx. */
  failures = 0;
  /** When the first of the current consecutive failures happened; 0 if the last call succeeded. */
  failedAt = 0;
  readonly problems: string[] = [];
  #stopped = false;
  #pending: { key: string; body: unknown; lines: number } | undefined;

  constructor(options: WriterOptions) {
    this.options = options;
  }

  /** Writes until `stop`, with `gapMs` milliseconds between batches. Afterwards, at most one batch is unacknowledged. */
  async run(gapMs = 0): Promise<void> {
    this.#stopped = false;
    while (!this.#stopped) {
      await this.sendOnce();
      if (gapMs > 0) await Bun.sleep(gapMs);
    }
  }

  stop(): void {
    this.#stopped = true;
  }

  /** Retries the batch with an unknown result, if there is one, until it is acknowledged. */
  async settle(): Promise<void> {
    while (this.#pending) await this.sendOnce();
  }

  /** Sends the current batch once. */
  async sendOnce(): Promise<CallResult<unknown>> {
    this.#pending ??= this.#nextBatch();
    const { key, body, lines } = this.#pending;
    const { client } = this.options;
    const headers = { "Idempotency-Key": key };
    const result = await call(client, "PATCH", PATH, body, { headers, problems: this.problems });
    if (result.outcome === "acknowledged") {
      this.acknowledged += lines;
      this.batches += 1;
      this.#pending = undefined;
      this.failedAt = 0;
      this.options.onAcknowledged?.();
    } else if (result.outcome === "unknown") {
      this.unknown += 1;
      if (result.status !== undefined) this.failures += 1;
      if (this.failedAt === 0) this.failedAt = performance.now();
      await Bun.sleep(PAUSE_MS);
    } else {
      this.problems.push(`${this.options.name}: a valid batch was refused: ${result.status} ${result.message}`);
      this.#stopped = true;
      this.#pending = undefined;
    }
    return result;
  }

  #nextBatch(): { key: string; body: unknown; lines: number } {
    const { name, source_ids, random } = this.options;
    const n = this.borders.size;
    const source_id = source_ids[n % source_ids.length] as string;
    const outputs = Array.from({ length: 1 + Math.floor(random() * 12) }, (_, i) => {
      return `${name} ${n}.${i} ${(FILL_CHARACTERS[(n + i) % FILL_CHARACTERS.length] as string).repeat(Math.floor(random() * 80))}`;
    });
    this.sent.push(...outputs.map((output) => ({ output, source_id })));
    this.borders.add(this.sent.length);
    const body = { log_source_id: source_id, logs: outputs.map((output) => ({ output })) };
    return { key: `${name}-${n}`, body, lines: outputs.length };
  }
}
