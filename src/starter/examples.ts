// The example templates that come with the server, as archives in the format of uploads. Embedded in the binary.
import { strToU8, zipSync } from "fflate";
import blankReadme from "./blank/README.md" with { type: "text" };
import blankManifest from "./blank/template.yaml" with { type: "text" };
import codeServerReadme from "./code-server/README.md" with { type: "text" };
import codeServerManifest from "./code-server/template.yaml" with { type: "text" };
import devcontainerReadme from "./devcontainer/README.md" with { type: "text" };
import devcontainerManifest from "./devcontainer/template.yaml" with { type: "text" };
import dockerReadme from "./docker/README.md" with { type: "text" };
import dockerManifest from "./docker/template.yaml" with { type: "text" };
import goReadme from "./go/README.md" with { type: "text" };
import goManifest from "./go/template.yaml" with { type: "text" };
import jupyterlabReadme from "./jupyterlab/README.md" with { type: "text" };
import jupyterlabManifest from "./jupyterlab/template.yaml" with { type: "text" };
import localReadme from "./local/README.md" with { type: "text" };
import localManifest from "./local/template.yaml" with { type: "text" };
import nodeReadme from "./node/README.md" with { type: "text" };
import nodeManifest from "./node/template.yaml" with { type: "text" };
import pythonReadme from "./python/README.md" with { type: "text" };
import pythonManifest from "./python/template.yaml" with { type: "text" };
import rustReadme from "./rust/README.md" with { type: "text" };
import rustManifest from "./rust/template.yaml" with { type: "text" };
import awsMain from "./terraform-aws/main.tf" with { type: "text" };
import awsReadme from "./terraform-aws/README.md" with { type: "text" };
import terraformDockerMain from "./terraform-docker/main.tf" with { type: "text" };
import terraformDockerReadme from "./terraform-docker/README.md" with { type: "text" };
import googleMain from "./terraform-google/main.tf" with { type: "text" };
import googleReadme from "./terraform-google/README.md" with { type: "text" };
import hetznerMain from "./terraform-hetzner/main.tf" with { type: "text" };
import hetznerReadme from "./terraform-hetzner/README.md" with { type: "text" };
import kubernetesMain from "./terraform-kubernetes/main.tf" with { type: "text" };
import kubernetesReadme from "./terraform-kubernetes/README.md" with { type: "text" };

// Derives the container variant of an example template: the same parameters, scripts and apps, in an image for development. Pure.

const formatContainer = (image: string): string => `    type: docker_container
    docker:
      image: ${image}
      env: { LANG: C.UTF-8 }
      volumes:
        - { name: home, path: /home }
`;
const PROVISIONER_LINE = /^provisioner: local$/m;
const TYPE_LINE = /^ {4}type: local_process\n/m;

/** Throws if the manifest does not have the expected layout. */
const toContainerManifest = (manifest: string, image: string): string => {
  for (const line of [PROVISIONER_LINE, TYPE_LINE]) {
    if (!line.test(manifest)) throw new Error(`the template has no line ${line.source}`);
  }
  return manifest.replace(PROVISIONER_LINE, "provisioner: docker").replace(TYPE_LINE, formatContainer(image));
};

/** The templates that a new installation creates. Each name is also the example_id and the provisioner. */
export const LOCAL = "local";
export const DOCKER = "docker";

export type Example = {
  readonly display_name: string;
  readonly description: string;
  readonly icon: string;
  /** The provisioner of the template's workspaces. */
  readonly provisioner: "local" | "docker" | "terraform";
  /** Variants that differ only in their provisioner have the same kind. */
  readonly kind: string;
  readonly markdown: string;
  readonly archive: () => Uint8Array;
};

/** Returns a zip archive. The same files always give the same bytes, so that they are stored once. */
export const makeArchive = (files: Readonly<Record<string, string>>): Uint8Array =>
  zipSync(Object.fromEntries(Object.entries(files).map(([name, text]) => [name, strToU8(text)])), {
    mtime: new Date(1980, 0, 1),
  });

type ExampleInfo = Pick<Example, "display_name" | "description" | "icon">;

/** The files of one folder: its README and its template.yaml or main.tf. */
type Sources = { readonly readme: string; readonly manifest: string };

/** Same as in the template "docker": Debian with git, curl, sudo, zsh, and a non-root user. */
const DEBIAN = "mcr.microsoft.com/devcontainers/base:2.1.13-trixie";
/** The same image with Python. */
const DEBIAN_WITH_PYTHON = "mcr.microsoft.com/devcontainers/python:3.13-bookworm";

const createExample = (
  info: ExampleInfo,
  kind: string,
  provisioner: Example["provisioner"],
  { readme, manifest }: Sources,
): Example => {
  const { display_name, description, icon } = info;
  const name = provisioner === "terraform" ? "main.tf" : "template.yaml";
  const archive = (): Uint8Array => makeArchive({ [name]: manifest, "README.md": readme });
  return { display_name, description, icon, provisioner, kind, markdown: readme, archive };
};

/** Returns two variants of an example: with processes on the server's machine, and with a container. */
const createVariants = (
  id: string,
  info: ExampleInfo,
  { readme, manifest }: Sources,
  image = DEBIAN,
): [string, Example][] => [
  [id, createExample(info, id, "local", { readme, manifest })],
  [
    `${id}-docker`,
    createExample(
      { display_name: `${info.display_name} in Docker`, description: info.description, icon: info.icon },
      id,
      "docker",
      { readme, manifest: toContainerManifest(manifest, image) },
    ),
  ],
];

/** The examples by example_id, in display order. */
export const EXAMPLES: ReadonlyMap<string, Example> = new Map([
  ...createVariants(
    "code-server",
    {
      display_name: "VS Code",
      description: "VS Code in the browser, with the extensions you name.",
      icon: "/icon/code.svg",
    },
    { readme: codeServerReadme, manifest: codeServerManifest },
  ),
  ...createVariants(
    "jupyterlab",
    {
      display_name: "JupyterLab",
      description: "Notebooks in the browser, in a Python environment.",
      icon: "/icon/jupyter.svg",
    },
    { readme: jupyterlabReadme, manifest: jupyterlabManifest },
    DEBIAN_WITH_PYTHON,
  ),
  ...createVariants(
    "node",
    {
      display_name: "Node.js",
      description: "Node.js and npm, with a preview of your server.",
      icon: "/icon/nodejs.svg",
    },
    { readme: nodeReadme, manifest: nodeManifest },
  ),
  ...createVariants(
    "python",
    {
      display_name: "Python",
      description: "A Python environment, with a preview of your server.",
      icon: "/icon/python.svg",
    },
    { readme: pythonReadme, manifest: pythonManifest },
    DEBIAN_WITH_PYTHON,
  ),
  ...createVariants(
    "go",
    {
      display_name: "Go",
      description: "The Go toolchain, with a preview of your server.",
      icon: "/icon/go.svg",
    },
    { readme: goReadme, manifest: goManifest },
  ),
  ...createVariants(
    "rust",
    {
      display_name: "Rust",
      description: "Rust and Cargo, with a preview of your server.",
      icon: "/icon/rust.svg",
    },
    { readme: rustReadme, manifest: rustManifest },
  ),
  [
    "devcontainer",
    createExample(
      {
        display_name: "Dev container",
        description: "A repository in the container that its devcontainer.json describes.",
        icon: "/icon/container.svg",
      },
      "devcontainer",
      "local",
      { readme: devcontainerReadme, manifest: devcontainerManifest },
    ),
  ],
  [
    LOCAL,
    createExample(
      {
        display_name: "Local",
        description: "A process on the server's machine, in its own folder.",
        icon: "/icon/terminal.svg",
      },
      LOCAL,
      "local",
      { readme: localReadme, manifest: localManifest },
    ),
  ],
  [
    DOCKER,
    createExample(
      {
        display_name: "Docker",
        description: "A Debian container with git and a persistent home.",
        icon: "/icon/docker.svg",
      },
      DOCKER,
      "docker",
      { readme: dockerReadme, manifest: dockerManifest },
    ),
  ],
  ...createVariants(
    "blank",
    {
      display_name: "Blank",
      description: "Only a terminal, as the start of your own template.",
      icon: "/icon/file.svg",
    },
    { readme: blankReadme, manifest: blankManifest },
  ),
  [
    "terraform-docker",
    createExample(
      {
        display_name: "Docker with Terraform",
        description: "A container with a home volume, created by Terraform.",
        icon: "/icon/docker.svg",
      },
      "terraform-docker",
      "terraform",
      { readme: terraformDockerReadme, manifest: terraformDockerMain },
    ),
  ],
  [
    "terraform-kubernetes",
    createExample(
      {
        display_name: "Kubernetes",
        description: "A pod with its home on a persistent volume.",
        icon: "/icon/k8s.svg",
      },
      "terraform-kubernetes",
      "terraform",
      { readme: kubernetesReadme, manifest: kubernetesMain },
    ),
  ],
  [
    "terraform-aws",
    createExample(
      {
        display_name: "AWS EC2",
        description: "An AWS virtual machine that stops when the workspace stops.",
        icon: "/icon/aws.svg",
      },
      "terraform-aws",
      "terraform",
      { readme: awsReadme, manifest: awsMain },
    ),
  ],
  [
    "terraform-google",
    createExample(
      {
        display_name: "Google Cloud",
        description: "A Google Cloud virtual machine with a persistent disk.",
        icon: "/icon/gcp.svg",
      },
      "terraform-google",
      "terraform",
      { readme: googleReadme, manifest: googleMain },
    ),
  ],
  [
    "terraform-hetzner",
    createExample(
      {
        display_name: "Hetzner Cloud",
        description: "A Hetzner Cloud virtual machine that is removed when the workspace stops; the home is kept.",
        icon: "/icon/hetzner.svg",
      },
      "terraform-hetzner",
      "terraform",
      { readme: hetznerReadme, manifest: hetznerMain },
    ),
  ],
]);
