// The templates for workspaces from a repository. They are created when a user opens the first repository.
import { type Example, makeArchive } from "./examples.ts";
import dockerReadme from "./repository/README.md" with { type: "text" };
import dockerManifest from "./repository/template.yaml" with { type: "text" };
import localReadme from "./repository-local/README.md" with { type: "text" };
import localManifest from "./repository-local/template.yaml" with { type: "text" };

const ICON = "/icon/code.svg";

type RepositoryTemplate = Pick<Example, "display_name" | "description" | "icon" | "archive"> & {
  readonly name: string;
};

/** The templates by their provisioner. */
export const REPOSITORY_TEMPLATES: ReadonlyMap<string, RepositoryTemplate> = new Map([
  [
    "docker",
    {
      name: "repository",
      display_name: "Repository",
      description: "A clone of a Git repository, in a container with the image that it specifies.",
      icon: ICON,
      archive: () => makeArchive({ "template.yaml": dockerManifest, "README.md": dockerReadme }),
    },
  ],
  [
    "local",
    {
      name: "repository-local",
      display_name: "Repository (no container)",
      description: "A clone of a Git repository, in a folder on the server's machine.",
      icon: ICON,
      archive: () => makeArchive({ "template.yaml": localManifest, "README.md": localReadme }),
    },
  ],
]);
