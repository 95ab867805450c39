// Packs a folder selected in the browser as a tar archive (POSIX ustar), the format for template uploads. Pure.

export type TarEntry = {
  /** Relative to the folder, with slashes. */
  readonly path: string;
  readonly bytes: Uint8Array;
};

const BLOCK_BYTES = 512;
const MAX_NAME_BYTES = 100;
const MAX_PREFIX_BYTES = 155;
const encoder = new TextEncoder();

/** Splits a path at a slash into the name and prefix of the header. Throws if it does not fit. */
const splitPath = (path: string): [name: Uint8Array, prefix: Uint8Array] => {
  for (let index = 0; index !== -1; index = path.indexOf("/", index + 1)) {
    const [prefix, name] = index === 0 ? ["", path] : [path.slice(0, index), path.slice(index + 1)];
    const encoded: [Uint8Array, Uint8Array] = [encoder.encode(name), encoder.encode(prefix)];
    if (encoded[0].length <= MAX_NAME_BYTES && encoded[1].length <= MAX_PREFIX_BYTES) return encoded;
  }
  throw new Error(`The path ${path} is too long for an archive.`);
};

const toOctal = (value: number, length: number): Uint8Array =>
  encoder.encode(`${value.toString(8).padStart(length - 1, "0")}\0`);

const toHeader = ({ path, bytes }: TarEntry): Uint8Array => {
  const header = new Uint8Array(BLOCK_BYTES);
  const [name, prefix] = splitPath(path);
  header.set(name, 0);
  header.set(toOctal(0o644, 8), 100);
  header.set(toOctal(0, 8), 108);
  header.set(toOctal(0, 8), 116);
  header.set(toOctal(bytes.length, 12), 124);
  header.set(toOctal(0, 12), 136);
  // The checksum is computed with its own field filled with spaces.
  header.set(encoder.encode("        0"), 148);
  header.set(encoder.encode("ustar\x0000"), 257);
  header.set(prefix, 345);
  const checksum = header.reduce((total, byte) => total + byte, 0);
  header.set(encoder.encode(`${checksum.toString(8).padStart(6, "0")}\0 `), 148);
  return header;
};

/** The output is deterministic: times and owners are omitted. */
export const makeTar = (entries: readonly TarEntry[]): Blob => {
  const parts: Uint8Array[] = [];
  for (const entry of [...entries].sort((a, b) => (a.path < b.path ? -1 : 1))) {
    parts.push(
      toHeader(entry),
      entry.bytes,
      new Uint8Array((BLOCK_BYTES - (entry.bytes.length % BLOCK_BYTES)) % BLOCK_BYTES),
    );
  }
  parts.push(new Uint8Array(2 * BLOCK_BYTES));
  return new Blob(parts as Uint8Array<ArrayBuffer>[], { type: "application/x-tar" });
};
