// Packs the program for a container: its path there, and the tar that an engine unpacks.

/** Path of the daemon in every container. */
export const PROGRAM_PATH = "/opt/slipway/slipway";

/** Returns a tar with one file, as a stream because the program has a hundred megabytes. `path` is the target path. */
export const createTar = (file: string, path: string): ReadableStream<Uint8Array> => {
  const source = Bun.file(file);
  const { size } = source;
  const parts = (async function* (): AsyncGenerator<Uint8Array> {
    yield createHeader(path.replace(/^\//, ""), size);
    for await (const chunk of source.stream()) yield chunk;
    // Padding to a full block, then two empty blocks.
    yield new Uint8Array(((512 - (size % 512)) % 512) + 1024);
  })();
  return toStream(parts);
};

const toStream = (parts: AsyncGenerator<Uint8Array>): ReadableStream<Uint8Array> =>
  new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { value, done } = await parts.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    async cancel() {
      await parts.return(undefined);
    },
  });

/** Returns a tar without entries. */
export const createEmptyTar = (): ReadableStream<Uint8Array> => new Blob([createTarEnd()]).stream();

/** Returns one file entry, for a tar assembled from parts. */
export const createTarEntry = (name: string, bytes: Uint8Array): Uint8Array =>
  Buffer.concat([createHeader(name, bytes.length), bytes, new Uint8Array((512 - (bytes.length % 512)) % 512)]);

/** Returns one folder entry with its owner. */
export const createTarFolder = (name: string, owner: Owner): Uint8Array =>
  createHeader(`${name.replace(/^\/|\/$/g, "")}/`, 0, owner);

/** Returns the end marker of an assembled tar. */
export const createTarEnd = (): Uint8Array => new Uint8Array(1024);

/** Concatenates streams. */
export const joinStreams = (parts: readonly (Uint8Array | ReadableStream<Uint8Array>)[]): ReadableStream<Uint8Array> =>
  toStream(
    (async function* (): AsyncGenerator<Uint8Array> {
      for (const part of parts) {
        if (part instanceof Uint8Array) yield part;
        else for await (const chunk of part) yield chunk;
      }
    })(),
  );

type Owner = { readonly uid: number; readonly gid: number };

const createHeader = (name: string, size: number, owner?: Owner): Uint8Array => {
  const block = new Uint8Array(512);
  const writeText = (at: number, text: string): void => void block.set(new TextEncoder().encode(text), at);
  const writeOctal = (at: number, width: number, value: number): void =>
    writeText(at, `${value.toString(8).padStart(width - 1, "0")}\0`);
  writeText(0, name);
  writeOctal(100, 8, 0o755);
  writeOctal(108, 8, owner?.uid ?? 0);
  writeOctal(116, 8, owner?.gid ?? 0);
  writeOctal(124, 12, size);
  writeOctal(136, 12, 0);
  writeText(148, "        ");
  writeText(156, owner ? "5" : "0");
  writeText(257, "ustar\0" + "00");
  writeOctal(
    148,
    7,
    block.reduce((sum, byte) => sum + byte, 0),
  );
  return block;
};
