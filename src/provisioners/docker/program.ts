// The daemon for a container: which file is put into it, whether it can run there, and the tar it travels in.
import { closeSync, openSync, readSync } from "node:fs";
import { ProvisionError } from "../provisioner.ts";

/** Where the daemon lies inside of every container. */
export const PROGRAM_PATH = "/opt/slipway/slipway";

/** Architectures by the number in an ELF header, named as in an image. */
const MACHINES: Readonly<Record<number, string>> = { 62: "amd64", 183: "arm64" };

export type Program = { readonly file: string; readonly architecture: string };

/** This program when it runs compiled; undefined from source. */
const ownBinary = (): string | undefined =>
  import.meta.path.startsWith("/$bunfs/") || import.meta.path.includes("~BUN") ? process.execPath : undefined;

/** Throws ProvisionError when there is no file to put into containers or it is no Linux program. */
export const findProgram = (setting: string | undefined): Program => {
  const file = setting ?? ownBinary();
  if (file === undefined) {
    throw new ProvisionError(
      "This server runs from source, so it has no program to put into a container. Make one with `bun run build` and name it in the setting agent_binary.",
    );
  }
  const header = new Uint8Array(20);
  try {
    const handle = openSync(file, "r");
    try {
      readSync(handle, header, 0, 20, 0);
    } finally {
      closeSync(handle);
    }
  } catch (error) {
    throw new ProvisionError(`The daemon for containers cannot be read: ${(error as Error).message}`);
  }
  const isElf = header[0] === 0x7f && String.fromCharCode(...header.slice(1, 4)) === "ELF";
  if (!isElf) {
    throw new ProvisionError(`${file} is no Linux program; name one in the setting agent_binary.`);
  }
  const number = (header[18] ?? 0) | ((header[19] ?? 0) << 8);
  return { file, architecture: MACHINES[number] ?? `machine ${number}` };
};

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
