// Compiles driver.c into the benchmark's temp folder and runs it pinned to the driver's core. The modes and keys are described in driver.c.
// Requires a C compiler: a driver in the server's own language would be the bottleneck.
import { join } from "node:path";
import { pinToCore } from "./machine.ts";

/** Latencies in ms. */
export interface Latency {
  n: number;
  p50: number;
  p90: number;
  p99: number;
  p999: number;
  max: number;
}

/** Result of one `load` run. Rates are per second of the measured window. */
export interface LoadResult {
  errors: number;
  /** Batches that a follower missed, received twice or received out of order. */
  gaps: number;
  /** Acknowledged lines that a follower never received, or received too often. */
  lines_wrong: number;
  followers_closed: number;
  /** Length of the measured window. */
  seconds: number;
  /** Utilization of the driver's core. Near 1, the driver is the bottleneck and the figures are meaningless. */
  driver_busy: number;
  batches_per_s: number;
  lines_per_s: number;
  /** Lines received by all followers in total. */
  deliveries_per_s: number;
  gets_per_s: number;
  ack: Latency;
  follow: Latency;
  probe: Latency;
  get: Latency;
  stalled?: {
    count: number;
    closed_with_frame: number;
    closed_without_frame: number;
    still_open: number;
    reason: string;
    codes: Record<string, number>;
  };
}

/** Result of one `start` run: the time from spawn to the first 200, and the memory after the settling time. */
export interface StartResult {
  start_ms: number;
  rss_kib: number;
  pss_kib: number;
}

/** One line of a plan; see the head of driver.c. */
export type PlanLine =
  | { kind: "patch"; agent: number; path: string; token: string; source: string }
  | { kind: "follow"; agent: number; path: string; token: string }
  | { kind: "probe" | "get"; path: string; token: string };

export interface LoadOptions {
  secs: number;
  warm?: number;
  lines?: number;
  rate?: number;
  probe_us?: number;
  barrier?: 0 | 1;
  stalled?: number;
  /** Seconds to wait at the end for lines in flight; default 10. */
  drain?: number;
}

export class Driver {
  private plans = 0;

  private constructor(
    private readonly program: string,
    private readonly dir: string,
    private readonly core: number | undefined,
  ) {}

  /** Compiles the driver into `dir`. Throws a readable message if there is no C compiler or no epoll. */
  static async compile(dir: string, core: number | undefined): Promise<Driver> {
    if (process.platform !== "linux") throw new Error("The benchmark's driver needs Linux (epoll).");
    const compiler = ["cc", "gcc", "clang"].find((name) => Bun.which(name));
    if (!compiler) {
      throw new Error(
        "The benchmark needs a C compiler for its load driver: none of cc, gcc, clang was found (Debian: apt-get install gcc libc6-dev).",
      );
    }
    const program = join(dir, "driver");
    const build = Bun.spawn([compiler, "-O3", "-o", program, join(import.meta.dir, "driver.c")], { stderr: "pipe" });
    if ((await build.exited) !== 0) throw new Error(`driver.c: ${await new Response(build.stderr).text()}`);
    return new Driver(program, dir, core);
  }

  /** Runs the load of a plan. `onEvent` receives the events "stalled" and "released". Aborting `abortSignal` ends the window early. */
  async load(
    port: number,
    plan: PlanLine[],
    options: LoadOptions,
    onEvent?: (event: string) => void,
    abortSignal?: AbortSignal,
  ): Promise<LoadResult> {
    const child = this.spawn(["load", String(port), await this.writePlan(plan), ...toArguments(options)]);
    abortSignal?.addEventListener("abort", () => child.kill("SIGTERM"), { once: true });
    let result: LoadResult | undefined;
    for await (const line of readLines(child.stdout)) {
      const message = JSON.parse(line);
      if (typeof message.event === "string") onEvent?.(message.event);
      else result = message;
    }
    await awaitSuccess(child);
    if (!result) throw new Error("the driver printed no result");
    return result;
  }

  /** Opens `count` followers and keeps them until disposed. Resolves when all of them are open. */
  async hold(port: number, plan: PlanLine[], count: number): Promise<AsyncDisposable> {
    const child = this.spawn(["hold", String(port), await this.writePlan(plan), `count=${count}`], "pipe");
    const opened = await readLines(child.stdout).next();
    if (opened.done) await awaitSuccess(child);
    return {
      [Symbol.asyncDispose]: async () => {
        child.stdin?.end();
        await child.exited;
      },
    };
  }

  /** Spawns a command without pinning, as a user would, measures until `path` responds with 200, and ends the command. */
  async start(port: number, path: string, command: string[], settleMs: number): Promise<StartResult> {
    const child = Bun.spawn([this.program, "start", String(port), path, ...command], {
      env: { ...process.env, SETTLE_MS: String(settleMs) },
      stderr: "inherit",
    });
    const text = await new Response(child.stdout).text();
    await awaitSuccess(child);
    return JSON.parse(text);
  }

  private spawn(args: string[], stdin: "ignore" | "pipe" = "ignore") {
    return Bun.spawn(pinToCore(this.core, [this.program, ...args]), { stdin, stdout: "pipe", stderr: "inherit" });
  }

  private async writePlan(plan: PlanLine[]): Promise<string> {
    const file = join(this.dir, `plan-${++this.plans}`);
    const text = plan
      .flatMap(expandLine)
      .map((line) =>
        line.kind === "patch"
          ? `patch ${line.agent} ${line.path} ${line.token} ${line.source}`
          : line.kind === "follow"
            ? `follow ${line.agent} ${line.path} ${line.token}`
            : `${line.kind} ${line.path} ${line.token}`,
      );
    await Bun.write(file, `${text.join("\n")}\n`);
    return file;
  }
}

/**
 * A probe uses many connections in turn. On a single connection, a request waits for the previous response, so event-loop turns of 4 ms
 * appeared as delays of 180 ms: each turn answered one request while four more became due.
 */
const PROBE_CONNECTIONS = 50;
const expandLine = (line: PlanLine): PlanLine[] =>
  line.kind === "probe" ? Array(PROBE_CONNECTIONS).fill(line) : [line];

function toArguments(options: LoadOptions): string[] {
  return Object.entries(options).map(([key, value]) => `${key}=${value}`);
}

async function awaitSuccess(child: { exited: Promise<number> }): Promise<void> {
  const code = await child.exited;
  if (code !== 0) throw new Error(`the driver ended with code ${code}; its reason is above`);
}

async function* readLines(stream: ReadableStream<Uint8Array>): AsyncGenerator<string, void> {
  const decoder = new TextDecoder();
  const reader = stream.getReader(); // kept open on purpose: `hold` takes one line and leaves the rest
  let unterminated = "";
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    unterminated += decoder.decode(part.value, { stream: true });
    const lines = unterminated.split("\n");
    unterminated = lines.pop() ?? "";
    for (const line of lines) if (line) yield line;
  }
}
