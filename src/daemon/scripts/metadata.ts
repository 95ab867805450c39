// Collects the agent's metadata: runs each script at its interval and sends the latest values (rule DM-14).
import type { Clock } from "#base/clock.ts";
import { pause } from "#base/retry.ts";
import { trimEnd } from "#base/text/trim.ts";
import type { WorkspaceAgentMetadata_Description } from "#src/wire/gen/agent_pb.ts";
import { fromMetadataDuration } from "#src/wire/index.ts";
import type { Connection } from "../connection/connection.ts";
import type { Environment } from "../environment.ts";
import { LatestReporter } from "../latest.ts";
import { toTimestamp } from "../times.ts";
import type { ProcessGroups } from "./groups.ts";
import { runScript } from "./run-script.ts";

export type MetadataOptions = {
  connection: Pick<Connection, "ask">;
  clock: Clock;
  signal: AbortSignal;
  env: Environment;
  directory: string;
  groups: ProcessGroups;
};

type Result = { key: string; at: number; value: string; error: string };

/** The server truncates values to this size (facts/platform 2.2). */
const MAX_BYTES = 2048;
const BATCH_INTERVAL_MS = 1_000;

/** Collects until the signal fires. A run that takes longer than its interval delays the next one. */
export const collectMetadata = (
  descriptions: readonly WorkspaceAgentMetadata_Description[],
  options: MetadataOptions,
): void => {
  const { connection, clock, signal } = options;
  const latest = new LatestReporter<Result>({
    connection,
    clock,
    what: "metadata",
    gap_ms: BATCH_INTERVAL_MS,
    send: (results) => (api, abort) =>
      api.batchUpdateMetadata(
        {
          metadata: results.map(({ key, at, value, error }) => ({
            key,
            result: { collectedAt: toTimestamp(at), age: 0n, value, error },
          })),
        },
        abort,
      ),
  });
  const runPeriodically = async (description: WorkspaceAgentMetadata_Description): Promise<void> => {
    const interval = Math.max(1_000, fromMetadataDuration(description.interval));
    while (!signal.aborted) {
      const startedAt = clock.monotonic();
      const at = clock.now();
      const result = await collect(description, interval, options);
      if (signal.aborted) return;
      latest.report(description.key, { key: description.key, at, ...result });
      await pause(clock, Math.max(0, startedAt + interval - clock.monotonic()), signal);
    }
  };
  for (const description of descriptions) void runPeriodically(description);
};

/** Runs one script and returns its standard output or an error. Never rejects. */
const collect = async (
  { script, timeout }: WorkspaceAgentMetadata_Description,
  interval_ms: number,
  { clock, env, directory, groups }: MetadataOptions,
): Promise<{ value: string; error: string }> => {
  const timeout_ms = fromMetadataDuration(timeout) || interval_ms;
  const output = { stdout: new OutputHead(), stderr: new OutputHead() };
  try {
    const { exit_code, timed_out } = await runScript(script, {
      directory,
      env,
      clock,
      groups,
      timeout_ms,
      onOutput: (from, bytes) => output[from].add(bytes),
    });
    const value = output.stdout.text;
    if (timed_out) return { value, error: `timed out after ${timeout_ms / 1000} s` };
    if (exit_code === 0) return { value, error: "" };
    return { value, error: truncateBytes(`exit code ${exit_code}: ${output.stderr.text}`.replace(/: $/, "")) };
  } catch (error) {
    return { value: "", error: truncateBytes(`cannot be started: ${(error as Error).message}`) };
  }
};

/** Keeps only the first bytes of an output: twice the limit, because surrounding whitespace is trimmed. */
class OutputHead {
  #bytes = Buffer.alloc(0);

  add(bytes: Uint8Array): void {
    const remainingBytes = 2 * MAX_BYTES - this.#bytes.length;
    if (remainingBytes > 0) this.#bytes = Buffer.concat([this.#bytes, bytes.subarray(0, remainingBytes)]);
  }

  get text(): string {
    return truncateBytes(this.#bytes.toString("utf8").trim());
  }
}

const truncateBytes = (text: string): string => {
  const bytes = Buffer.from(text);
  if (bytes.length <= MAX_BYTES) return text;
  // Drops a character of which the limit cuts off a part.
  return trimEnd(bytes.subarray(0, MAX_BYTES).toString("utf8"), "\uFFFD");
};
