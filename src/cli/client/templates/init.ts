// `slipway templates init [FOLDER] [--example NAME] [--list]`: creates a folder for a new template. Needs no server.
import { resolve } from "node:path";
import { usageError } from "#base/usage-error.ts";
import { EXAMPLES, LOCAL } from "#src/starter/examples.ts";
import { readArguments, requireNoWords } from "../../arguments.ts";
import { formatTable } from "../../options.ts";
import { EXIT, type RunVerb } from "../../verb.ts";
import { explainError } from "../remote.ts";
import { unpack } from "./unpack.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { values: ["example"], switches: ["list"] });
  const [folder = ".", ...more] = words;
  requireNoWords(more);
  if (has.list) {
    const rows = [...EXAMPLES].map(([id, { description }]) => ({ name: id, description }));
    if (has.json) input.print(JSON.stringify(rows));
    else
      input.print(
        formatTable(
          ["NAME", "DESCRIPTION"],
          rows.map((one) => [one.name, one.description]),
        ),
      );
    return EXIT.ok;
  }
  const name = value.example ?? LOCAL;
  const example = EXAMPLES.get(name);
  if (!example) throw usageError("--example", `expected one of ${[...EXAMPLES.keys()].join(", ")}`);
  return explainError("templates init", input, async () => {
    const files = await unpack(example.archive(), folder);
    const path = resolve(folder);
    if (has.json) input.print(JSON.stringify({ path, files }));
    else
      input.print(
        `${path} holds ${files.join(", ")}. \`slipway templates push ${folder}\` creates a template from it.`,
      );
  });
};
