// The templates that come with the server, as archives ready to be imported like any upload. Embedded in the binary.
import { strToU8, zipSync } from "fflate";
import dockerReadme from "./docker/README.md" with { type: "text" };
import dockerManifest from "./docker/template.yaml" with { type: "text" };
import localReadme from "./local/README.md" with { type: "text" };
import localManifest from "./local/template.yaml" with { type: "text" };

/** The names of the ready templates; each is its example_id and the provisioner it needs, too. */
export const LOCAL = "local";
export const DOCKER = "docker";

export type Example = {
  readonly display_name: string;
  readonly description: string;
  readonly markdown: string;
  readonly archive: () => Uint8Array;
};

// The same bytes each time, so that the same content is one file.
const makeArchive = (files: Readonly<Record<string, string>>): Uint8Array =>
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
      markdown: localReadme,
      archive: () => makeArchive({ "template.yaml": localManifest, "README.md": localReadme }),
    },
  ],
  [
    DOCKER,
    {
      display_name: "Docker",
      description: "A Debian container with git and a home that is kept while it is stopped.",
      markdown: dockerReadme,
      archive: () => makeArchive({ "template.yaml": dockerManifest, "README.md": dockerReadme }),
    },
  ],
]);
