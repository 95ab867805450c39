// Packs a folder selected in the browser as a tar archive (POSIX ustar), the format for template uploads. Pure.

export type TarEntry = {
  /** Relative to the folder, with slashes. */
  readonly path: string;
  readonly bytes: Uint8Array;
};

const BLOCK = 512;
const MAX_NAME_BYTES = 100;
const PREFIX = 155;
const text = new TextEncoder();

/** Splits a path at a slash into the name and prefix of the header. Throws if it does not fit. */
const splitPath = (path: string): [name: Uint8Array, prefix: Uint8Array] => {
  for (let at = 0; at !== -1; at = path.indexOf("/", at + 1)) {
    const [prefix, name] = at === 0 ? ["", path] : [path.slice(0, at), path.slice(at + 1)];
    const parts: [Uint8Array, Uint8Array] = [text.encode(name), text.encode(prefix)];
    if (parts[0].length <= MAX_NAME_BYTES && parts[1].length <= PREFIX) return parts;
  }
  throw new Error(`The path ${path} is too long for an archive.`);
};

const octal = (value: number, length: number): Uint8Array =>
  text.encode(`${value.toString(8).padStart(length - 1, "0")}\0`);

const toHeader = ({ path, bytes }: TarEntry): Uint8Array => {
  const header = new Uint8Array(BLOCK);
  const [name, prefix] = splitPath(path);
  header.set(name, 0);
  header.set(octal(0o644, 8), 100);
  header.set(octal(0, 8), 108);
  header.set(octal(0, 8), 116);
  header.set(octal(bytes.length, 12), 124);
  header.set(octal(0, 12), 136);
  // The checksum is computed with its own field filled with spaces.
  header.set(text.encode("        0"), 148);
  header.set(text.encode("ustar\x0000"), 257);
  header.set(prefix, 345);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.set(text.encode(`${sum.toString(8).padStart(6, "0")}\0 `), 148);
  return header;
};

/** The output is deterministic: times and owners are omitted. */
export const makeTar = (entries: readonly TarEntry[]): Blob => {
  const parts: Uint8Array[] = [];
  for (const entry of [...entries].sort((a, b) => (a.path < b.path ? -1 : 1))) {
    parts.push(toHeader(entry), entry.bytes, new Uint8Array((BLOCK - (entry.bytes.length % BLOCK)) % BLOCK));
  }
  parts.push(new Uint8Array(2 * BLOCK));
  return new Blob(parts as Uint8Array<ArrayBuffer>[], { type: "application/x-tar" });
};
