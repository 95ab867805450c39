// Runs an SSH command without a terminal, with its pipes connected to the channel.
import { finishesWithin } from "#base/retry.ts";
import { sendExit } from "./exit.ts";
import type { Running, RunOptions } from "./running.ts";

/** How long output is read after the command has ended: a background process may keep the pipes open. */
const PIPE_TIMEOUT_MS = 10_000;

/** Starts the command and connects its pipes to the channel. Throws if it cannot be started. */
export const runPiped = ({ channel, command, directory, env, clock, groups, exited }: RunOptions): Running => {
  const child = Bun.spawn([...command], {
    cwd: directory,
    env: { ...env },
    stdin: "pipe",
    stdout: "pipe",
    stderr: "pipe",
    detached: true,
  });
  groups.add(child.pid);
  channel.on("data", (chunk: Buffer) => {
    child.stdin.write(new Uint8Array(chunk));
    const flushed = child.stdin.flush();
    if (!(flushed instanceof Promise)) return;
    channel.pause();
    flushed.then(
      () => channel.resume(),
      () => channel.resume(),
    );
  });
  const endInput = (): void => {
    // The program may already have closed its end.
    Promise.resolve(child.stdin.end()).catch(() => {});
  };
  channel.on("end", endInput);
  channel.on("close", endInput);
  const readOutput = Promise.all([copyOutput(child.stdout, channel), copyOutput(child.stderr, channel.stderr)]);
  void (async () => {
    await child.exited;
    await finishesWithin(clock, PIPE_TIMEOUT_MS, readOutput);
    groups.onLeaderEnd(child.pid);
    sendExit(channel, child, exited);
  })();
  return {
    signal(name) {
      try {
        process.kill(-child.pid, name);
      } catch {
        // The process has ended.
      }
    },
  };
};

type Sink = {
  write(chunk: Buffer): boolean;
  once(event: "drain" | "close", run: () => void): unknown;
  destroyed?: boolean;
};

/** Copies output to the client. Waits while the client does not read; discards output once the client has disconnected. */
const copyOutput = async (from: ReadableStream<Uint8Array>, to: Sink): Promise<void> => {
  for await (const chunk of from) await writeAll(to, chunk);
};

/** Writes a chunk. Resolves when the receiver accepts more. */
export const writeAll = async (to: Sink, chunk: Uint8Array): Promise<void> => {
  if (to.destroyed || to.write(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength))) return;
  await new Promise<void>((resolve) => {
    to.once("drain", resolve);
    to.once("close", resolve);
  });
};
