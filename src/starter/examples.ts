// The templates that come with the server, as archives ready to be imported like any upload. Embedded in the binary.
import { strToU8, zipSync } from "fflate";
import readme from "./local/README.md" with { type: "text" };
import manifest from "./local/template.yaml" with { type: "text" };

/** The name of the ready template, and its example_id. */
export const LOCAL = "local";

export type Example = {
  readonly display_name: string;
  readonly description: string;
  readonly archive: () => Uint8Array;
};

// The same bytes each time, so that the same content is one file.
const archiveOf = (files: Readonly<Record<string, string>>): Uint8Array =>
  zipSync(Object.fromEntries(Object.entries(files).map(([name, text]) => [name, strToU8(text)])), {
    mtime: new Date(1980, 0, 1),
  });

/** By example_id. The archives are zip. */
export const EXAMPLES: ReadonlyMap<string, Example> = new Map([
  [
    LOCAL,
    {
      display_name: "Local",
      description: "A process on the server's own machine, in a folder of its own.",
      archive: () => archiveOf({ "template.yaml": manifest, "README.md": readme }),
    },
  ],
]);
