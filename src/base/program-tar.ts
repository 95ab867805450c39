// How the program travels into a container: where it lies there, and the tar that an engine unpacks.

/** Where the daemon lies inside of every container. */
export const PROGRAM_PATH = "/opt/slipway/slipway";

/** A tar with the one file, as a stream: the program is a hundred megabytes. `path` is where it is to lie. */
export const tarWith = (file: string, path: string): ReadableStream<Uint8Array> => {
  const source = Bun.file(file);
  const { size } = source;
  const parts = (async function* (): AsyncGenerator<Uint8Array> {
    yield header(path.replace(/^\//, ""), size);
    for await (const chunk of source.stream()) yield chunk;
    // Up to a whole block, then two empty ones.
    yield new Uint8Array(((512 - (size % 512)) % 512) + 1024);
  })();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { value, done } = await parts.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    async cancel() {
      await parts.return(undefined);
    },
  });
};

/** A tar with nothing in it. */
export const emptyTar = (): ReadableStream<Uint8Array> => new Blob([new Uint8Array(1024)]).stream();

const header = (name: string, size: number): Uint8Array => {
  const block = new Uint8Array(512);
  const put = (at: number, text: string): void => void block.set(new TextEncoder().encode(text), at);
  const octal = (at: number, width: number, value: number): void =>
    put(at, `${value.toString(8).padStart(width - 1, "0")}\0`);
  put(0, name);
  octal(100, 8, 0o755);
  octal(108, 8, 0);
  octal(116, 8, 0);
  octal(124, 12, size);
  octal(136, 12, 0);
  put(148, "        ");
  put(156, "0");
  put(257, "ustar\0" + "00");
  octal(
    148,
    7,
    block.reduce((sum, byte) => sum + byte, 0),
  );
  return block;
};
