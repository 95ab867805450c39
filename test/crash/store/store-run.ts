// Starts the writing process and passes its output to an oracle.
import { join } from "node:path";
import { readLines } from "#test/support/net/lines.ts";
import type { ChildOrder } from "./store-child.ts";
import type { Oracle } from "./store-oracle.ts";

export type ChildResult = { code: number | null; signal: Bun.Subprocess["signalCode"]; errors: string };

export type ChildOptions = {
  /** Command prefix, such as strace and its options. */
  commandPrefix?: string[];
  env?: Record<string, string>;
  /** Called after each line. */
  onLine?(line: string, child: Bun.Subprocess): void;
};

/** Runs one writing process to its end. */
export const runChild = async (order: ChildOrder, oracle: Oracle, options: ChildOptions = {}): Promise<ChildResult> => {
  const command = [process.execPath, join(import.meta.dir, "store-child.ts"), JSON.stringify(order)];
  const child = Bun.spawn([...(options.commandPrefix ?? []), ...command], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    env: { ...Bun.env, ...options.env },
  });
  const errors = new Response(child.stderr).text();
  for await (const line of readLines(child.stdout)) {
    oracle.handleLine(line);
    options.onLine?.(line, child);
  }
  await child.exited;
  return { code: child.exitCode, signal: child.signalCode, errors: await errors };
};
