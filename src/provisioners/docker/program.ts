// The daemon for a container: which file is put into it, and whether it can run there.
import { closeSync, openSync, readSync } from "node:fs";
import { ownBinary } from "#base/program.ts";
import { ProvisionError } from "../provisioner.ts";

/** Architectures by the number in an ELF header, named as in an image. */
const MACHINES: Readonly<Record<number, string>> = { 62: "amd64", 183: "arm64" };

export type Program = { readonly file: string; readonly architecture: string };

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
