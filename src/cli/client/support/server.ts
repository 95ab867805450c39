// `slipway support-bundle FILE.tar --url URL`: downloads the bundle of a running server, as an owner. Existing files are not overwritten.
import { writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { ApiError } from "#src/client.ts";
import { readArguments } from "../../arguments.ts";
import { VerbFailure } from "../../failure.ts";
import { requireOneWord } from "../../options.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv);
  const file = requireOneWord(words, "the file to write, such as support.tar");
  return withServer("support-bundle", input, value, async ({ client }) => {
    const path = "/api/v2/deployment/support-bundle";
    const answer = await client.fetch("GET", path);
    if (!answer.ok) throw new ApiError(answer.status, (await answer.json()) as ApiError["body"]);
    const bytes = await answer.bytes();
    try {
      writeFileSync(file, bytes, { flag: "wx", mode: 0o600 });
    } catch (error) {
      throw new VerbFailure((error as Error).message);
    }
    const names = [...(await new Bun.Archive(bytes).files()).keys()];
    if (has.json) input.print(JSON.stringify({ path: resolve(file), files: names }));
    else input.print(`${resolve(file)} holds ${names.join(", ")}. Review it before you send it: tar -xOf ${file}`);
  });
};
