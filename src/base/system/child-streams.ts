// What goes into a program that was started, and what comes out of it, without more in memory than is on its way.

type Feedable = Bun.Subprocess<"pipe", "pipe" | "ignore", "pipe">;

/** Writes a stream into a program, until that has ended. When the stream fails the program is killed, so that it never takes what came for the whole. */
export const feed = async (child: Feedable, stream: AsyncIterable<Uint8Array>): Promise<void> => {
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

/** What a program prints. It is killed when that is not read to the end. */
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
