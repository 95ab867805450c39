// Finds the daemon program that is copied into containers, and determines its system and architecture.
import { closeSync, openSync, readSync } from "node:fs";
import { getOwnBinary } from "#base/program.ts";
import { ProvisionError } from "../provisioner.ts";

/** Architectures by ELF header number, with the names used in images. */
const MACHINES: Readonly<Record<number, string>> = { 62: "amd64", 183: "arm64" };

export type Program = { readonly file: string; readonly architecture: string };

const MUSL = /ld-musl-[a-z0-9_]+\.so/;
/** Bytes at the start of a program that include the ELF loader's name. */
const HEAD_BYTES = 4096;

/**
 * Returns the system of a Linux program, such as `linux-amd64` or `linux-musl-arm64`. Returns the system of this process for a script, and
 * undefined for any other file.
 */
export const readSystem = (file: string): string | undefined => {
  const head = readHead(file, HEAD_BYTES);
  if (head.startsWith("#!")) return `${process.platform}-${process.arch === "x64" ? "amd64" : process.arch}`;
  if (!head.startsWith("\x7fELF")) return undefined;
  const machine = MACHINES[head.charCodeAt(18) | (head.charCodeAt(19) << 8)];
  return machine && `linux${MUSL.test(head) ? "-musl" : ""}-${machine}`;
};

const readHead = (file: string, length: number): string => {
  const bytes = Buffer.alloc(length);
  const handle = openSync(file, "r");
  try {
    return bytes.subarray(0, readSync(handle, bytes, 0, length, 0)).toString("latin1");
  } finally {
    closeSync(handle);
  }
};

/** Returns the daemon program. Throws ProvisionError if it is missing, or if it is not a Linux program. */
export const findProgram = (setting: string | undefined): Program => {
  const file = setting ?? getOwnBinary();
  if (file === undefined) {
    throw new ProvisionError(
      "This server runs from source, so it has no program to put into a container. Build one with `bun run build` and set agent_binary to its path.",
    );
  }
  let header: string;
  try {
    header = readHead(file, 20);
  } catch (error) {
    throw new ProvisionError(`The daemon for containers cannot be read: ${(error as Error).message}`);
  }
  if (!header.startsWith("\x7fELF")) {
    throw new ProvisionError(`${file} is not a Linux program. Set agent_binary to one.`);
  }
  const number = header.charCodeAt(18) | (header.charCodeAt(19) << 8);
  return { file, architecture: MACHINES[number] ?? `machine ${number}` };
};
