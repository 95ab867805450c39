// `slipway templates pull TEMPLATE [FOLDER] [--version NAME]`: downloads the files of a version.
import { resolve } from "node:path";
import { ApiError } from "#src/client.ts";
import { readArguments, requireNoWords } from "../../arguments.ts";
import { VerbFailure } from "../../failure.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { getVersion, selectTemplate } from "./find.ts";
import { ensureEmptyFolder, unpack } from "./unpack.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { values: ["version"] });
  const [name, folder, ...more] = words;
  requireNoWords(more);
  const findTemplate = selectTemplate(input, name === undefined ? [] : [name]);
  return withServer("templates pull", input, value, async ({ client }) => {
    const template = await findTemplate(client);
    const path = resolve(folder ?? template.name);
    ensureEmptyFolder(path);
    const version = await getVersion(client, template, value.version);
    const answer = await client.fetch("GET", `/api/v2/files/${version.job.file_id}`);
    if (!answer.ok) throw await toError(answer);
    const files = await unpack(new Uint8Array(await answer.arrayBuffer()), path);
    if (has.json) input.print(JSON.stringify({ path, files, version }));
    else input.print(`${path} holds ${files.join(", ")} from version ${version.name}.`);
  });
};

const toError = async (answer: Response): Promise<Error> => {
  if (answer.status === 404) return new VerbFailure("its files don't exist, or you don't have access to them");
  return new ApiError(answer.status, { message: `The server answered ${answer.status}.`, detail: await answer.text() });
};
