// `slipway templates init [FOLDER] [--example local|docker]`: a folder to begin a template of one's own with. Needs no server.
import { resolve } from "node:path";
import { usageError } from "#base/usage-error.ts";
import { EXAMPLES, LOCAL } from "#src/starter/examples.ts";
import { noWords, readArguments } from "../../arguments.ts";
import { EXIT, type RunVerb } from "../../verb.ts";
import { forPeople } from "../remote.ts";
import { unpack } from "./unpack.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { values: ["example"] });
  const [folder = ".", ...more] = words;
  noWords(more);
  const name = value.example ?? LOCAL;
  const example = EXAMPLES.get(name);
  if (!example) throw usageError("--example", `expected ${[...EXAMPLES.keys()].join(" or ")}`);
  return forPeople("templates init", input, async () => {
    const files = await unpack(example.archive(), folder);
    const path = resolve(folder);
    if (has.json) input.print(JSON.stringify({ path, files }));
    else input.print(`${path} holds ${files.join(", ")}. \`slipway templates push ${folder}\` makes a template of it.`);
    return EXIT.ok;
  });
};
