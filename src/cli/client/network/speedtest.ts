// `slipway speedtest WORKSPACE`: measures the throughput of the private network to or from a workspace (rule CN-5).
import { formatSize } from "#base/format-size.ts";
import { usageError } from "#base/usage-error.ts";
import type { TcpConnection } from "#src/tailnet/index.ts";
import { AGENT_PORT } from "#src/wire/index.ts";
import { readArguments } from "../../arguments.ts";
import { VerbFailure } from "../../failure.ts";
import { promptIfMissing, takeOneWord } from "../../missing-arguments.ts";
import { EXIT, type RunVerb, type VerbInput } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { listOwnWorkspaces } from "../workspaces/find.ts";
import { withAgent } from "./target.ts";

const DIRECTION = { down: 0, up: 1 } as const;
const VERSION = 2;
const INTERVAL_MS = 1_000;
const BLOCK = new Uint8Array(64 * 1024);

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { values: ["direction", "time"], short: { t: "time" } });
  const word = takeOneWord(input, words, "the workspace");
  const { direction = "down", time = "5" } = value;
  if (direction !== "down" && direction !== "up") throw usageError("--direction", "expected down or up");
  const seconds = Number(time.replace(/s$/, ""));
  if (!(seconds > 0 && seconds <= 60)) throw usageError("--time", "expected up to 60 seconds, such as 5s");
  return withServer("speedtest", input, value, async (remote) => {
    const name = await promptIfMissing(input, word, "Workspace", () => listOwnWorkspaces(remote.client));
    return withAgent(input, remote, name, async ({ joined, agent_id }) => {
      const connection = await joined.peer.dial(agent_id, AGENT_PORT.speed_test, input.signal);
      const meter = new Meter(input.clock.monotonic());
      await measure(input, connection, { direction, seconds, meter });
      const { bytes, ms } = meter.end(input.clock.monotonic());
      const megabytesPerSecond = bytes / 1e6 / (ms / 1_000);
      if (has.json) {
        const result = { direction, seconds: ms / 1_000, bytes, megabytes_per_second: megabytesPerSecond };
        input.print(JSON.stringify({ ...result, overall: toThroughput(0, ms, bytes), intervals: meter.intervals }));
      } else
        input.print(
          `${direction}: ${formatSize(bytes)} in ${(ms / 1_000).toFixed(1)} s, ${formatSize(Math.round((bytes * 1_000) / ms))}/s`,
        );
      return EXIT.ok;
    });
  });
};

type Throughput = { start_time_seconds: number; end_time_seconds: number; throughput_mbits: number };

const toThroughput = (from_ms: number, to_ms: number, bytes: number): Throughput => ({
  start_time_seconds: from_ms / 1_000,
  end_time_seconds: to_ms / 1_000,
  throughput_mbits: to_ms > from_ms ? (bytes * 8) / 1e6 / ((to_ms - from_ms) / 1_000) : 0,
});

/** Measures throughput per second. */
class Meter {
  readonly intervals: Throughput[] = [];
  readonly #startedAt: number;
  #from = 0;
  #bytes = 0;
  #total = 0;

  constructor(now: number) {
    this.#startedAt = now;
  }

  add(bytes: number, now: number): void {
    this.#bytes += bytes;
    this.#total += bytes;
    if (now - this.#startedAt - this.#from >= INTERVAL_MS) this.#close(now - this.#startedAt);
  }

  /** Ends the last interval, which may be shorter, and returns the total. */
  end(now: number): { bytes: number; ms: number } {
    const ms = now - this.#startedAt;
    if (this.#bytes > 0 || this.intervals.length === 0) this.#close(ms);
    return { bytes: this.#total, ms };
  }

  #close(to: number): void {
    this.intervals.push(toThroughput(this.#from, to, this.#bytes));
    this.#from = to;
    this.#bytes = 0;
  }
}

type SpeedTest = { direction: keyof typeof DIRECTION; seconds: number; meter: Meter };

const measure = async (
  { clock, signal }: VerbInput,
  connection: TcpConnection,
  { direction, seconds, meter }: SpeedTest,
): Promise<void> => {
  const request = { version: VERSION, time: seconds * 1e9, direction: DIRECTION[direction] };
  await connection.write(new TextEncoder().encode(`${JSON.stringify(request)}\n`));
  const answer = await connection.read();
  if (!answer) throw new VerbFailure("the workspace's agent doesn't support speed tests");
  const startedAt = clock.monotonic();
  meter.add(Math.max(0, answer.byteLength - "{}\n".length), startedAt);
  if (direction === "down") for await (const chunk of connection) meter.add(chunk.byteLength, clock.monotonic());
  else {
    while (clock.monotonic() - startedAt < seconds * 1_000 && !signal.aborted) {
      await connection.write(BLOCK);
      meter.add(BLOCK.byteLength, clock.monotonic());
    }
    await connection.end();
    // The other side closes once it has read everything.
    while ((await connection.read()) !== undefined);
  }
};
