// Loads the files for the browser: from the archive in the binary, or from a build on the first request when the server runs from source.
import { buildWeb } from "./build.ts";
import { PACK, type ServedFile, unpack, withTwins } from "./files.ts";

/** Returns all files by name. From source they are built, which takes a few hundred milliseconds. */
export const loadWeb = async (): Promise<ReadonlyMap<string, ServedFile>> => {
  const embedded = Bun.embeddedFiles.find((file) => (file as Blob & { name: string }).name.endsWith(PACK));
  const files = embedded ? unpack(new Uint8Array(await embedded.arrayBuffer())) : await buildFiles();
  return new Map(files.map((file) => [file.name, file]));
};

const buildFiles = async (): Promise<ServedFile[]> => {
  return Promise.all((await buildWeb()).map((file) => withTwins(file, "fast")));
};
