// Where what the browser loads comes from: the pack in the binary, or a build on the first request when the server runs from source.
import { buildWeb } from "./build.ts";
import { PACK, type ServedFile, unpack, withTwins } from "./files.ts";

/** Everything the browser loads, by name. From source it is built, which takes some hundred milliseconds. */
export const loadWeb = async (): Promise<ReadonlyMap<string, ServedFile>> => {
  const embedded = Bun.embeddedFiles.find((one) => (one as Blob & { name: string }).name.endsWith(PACK));
  const files = embedded ? unpack(new Uint8Array(await embedded.arrayBuffer())) : await built();
  return new Map(files.map((file) => [file.name, file]));
};

const built = async (): Promise<ServedFile[]> => {
  return Promise.all((await buildWeb()).map((file) => withTwins(file, "fast")));
};
