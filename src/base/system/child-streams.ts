// Streams data into and out of child processes with bounded memory.

type Feedable = Bun.Subprocess<"pipe", "pipe" | "ignore", "pipe">;

/**
 * Writes a stream to a program's input until it ends. If the stream fails, the program is killed, so that it never treats partial input
 * as complete.
 */
export const writeToChild = async (child: Feedable, stream: AsyncIterable<Uint8Array>): Promise<void> => {
  try {
    for await (const bytes of stream) {
      child.stdin.write(bytes);
      await Promise.race([child.stdin.flush(), child.exited]);
      if (child.exitCode !== null) break;
    }
  } catch (error) {
    child.kill("SIGKILL");
    await child.exited;
    throw error;
  }
  await child.stdin.end();
};

/** Yields a program's output. The program is killed when its output is not read to the end. */
export async function* drain(child: Bun.Subprocess<"pipe", "pipe", "pipe">): AsyncGenerator<Uint8Array> {
  child.stdin.end();
  let isRead = false;
  try {
    for await (const bytes of child.stdout) yield bytes;
    isRead = true;
  } finally {
    if (!isRead) child.kill("SIGKILL");
  }
}
