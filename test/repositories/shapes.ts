// Twenty kinds of real repositories, reduced to a few files, each with a command and its output in the workspace. All base images are the
// git image of the tests' engine.
import type { RepositoryAsked } from "#schema/templates/repository.ts";
import { GIT_IMAGE } from "#test/support/docker/git-image.ts";

const DEV = ".devcontainer/devcontainer.json";
const json = (value: unknown): string => JSON.stringify(value);
const image = GIT_IMAGE;

export type Shape = {
  readonly name: string;
  readonly title: string;
  readonly files: Readonly<Record<string, string>>;
  readonly request?: Partial<RepositoryAsked>;
  /** A shell command, and its output in the workspace. */
  readonly command: string;
  readonly output: string;
  /** The title of the app created for a port. */
  readonly app?: string;
  /** The command's output in a workspace without Docker, for repositories that do not need an image. */
  readonly localOutput?: string;
};

/** The images selected by programming language. */
export const LANGUAGE_IMAGES = [
  "mcr.microsoft.com/devcontainers/go:1.25",
  "mcr.microsoft.com/devcontainers/python:3.13",
  "mcr.microsoft.com/devcontainers/rust:1",
];

/** Returns all shapes. `tool` is the ID of a feature in a registry that writes its option to the file /tool. */
export const listShapes = (tool: string): readonly Shape[] => [
  {
    name: "image",
    title: "an image and a name, with comments and trailing commas",
    files: { [DEV]: `// Ours\n{ "name": "Go", /* one */ "image": "${image}", "containerEnv": { "KIND": "plain", }, }` },
    command: "echo $KIND $(basename $PWD)",
    output: "plain image",
    localOutput: "plain image",
  },
  {
    name: "few-properties",
    title: "an image with a user and a variable",
    files: { ".devcontainer.json": json({ image, remoteUser: "root", remoteEnv: { MODE: "dev" } }) },
    command: "echo $(id -un) $MODE",
    output: "root dev",
  },
  {
    name: "feature",
    title: "an image with a feature of a registry",
    files: { [DEV]: json({ image, features: { [tool]: { color: "green" } } }) },
    command: "cat /tool",
    output: "green",
  },
  {
    name: "own-feature",
    title: "an image with a local feature, ports and a command",
    files: {
      [DEV]: json({
        image,
        features: { "./own": {} },
        forwardPorts: [3000],
        portsAttributes: { "3000": { label: "Web" } },
        postCreateCommand: "echo done >created",
        waitFor: "postCreateCommand",
      }),
      ".devcontainer/own/devcontainer-feature.json": json({ id: "own", containerEnv: { OWN: "yes" } }),
      ".devcontainer/own/install.sh": "#!/bin/sh\necho own >/own\n",
    },
    command: "echo $(cat /own) $OWN $(cat created)",
    output: "own yes done",
    app: "Web",
  },
  {
    name: "mounts",
    title: "a custom mount for the clone, a volume and variables",
    files: {
      [DEV]: json({
        image,
        workspaceMount: `source=\${localWorkspaceFolder},target=/src/app,type=bind`,
        workspaceFolder: "/src/app",
        mounts: ["source=cache,target=/cache,type=volume"],
        remoteEnv: { WHERE: `\${containerWorkspaceFolder}/bin` },
      }),
    },
    command: "touch /cache/x && echo $PWD $WHERE",
    output: "/src/app /src/app/bin",
  },
  {
    name: "commands",
    title: "commands as lines, as lists and in parallel",
    files: {
      [DEV]: json({
        image,
        onCreateCommand: ["sh", "-c", "echo create >>order"],
        updateContentCommand: { web: "echo web >web.txt", api: ["sh", "-c", "echo api >api.txt"] },
        postCreateCommand: "echo post >>order",
        postStartCommand: "echo start >>order",
        waitFor: "postStartCommand",
      }),
    },
    command: "echo $(cat order web.txt api.txt)",
    output: "create post start web api",
    localOutput: "create post start web api",
  },
  {
    name: "dockerfile",
    title: "a Dockerfile next to the configuration",
    files: {
      [DEV]: json({ build: { dockerfile: "Dockerfile" } }),
      ".devcontainer/Dockerfile": `FROM ${image}\nENV BUILT=here\n`,
    },
    command: "echo $BUILT",
    output: "here",
  },
  {
    name: "args",
    title: "a Dockerfile with arguments and a stage",
    files: {
      [DEV]: json({ build: { dockerfile: "Dockerfile", context: "..", args: { WORD: "spoken" }, target: "dev" } }),
      ".devcontainer/Dockerfile": `FROM ${image} AS dev\nARG WORD\nENV WORD=$WORD\nFROM dev\nENV WORD=last\n`,
    },
    command: "echo $WORD",
    output: "spoken",
  },
  {
    name: "context",
    title: "a Dockerfile that copies files of the repository",
    files: {
      [DEV]: json({ build: { dockerfile: "Dockerfile", context: ".." } }),
      ".devcontainer/Dockerfile": `FROM ${image}\nCOPY docs/word.txt /word.txt\n`,
      "docs/word.txt": "copied\n",
    },
    command: "cat /word.txt",
    output: "copied",
  },
  {
    name: "old-form",
    title: "dockerFile and context at the top level, the old format",
    files: {
      [DEV]: json({ dockerFile: "../docker/dev.Dockerfile", context: "../docker" }),
      "docker/dev.Dockerfile": `FROM ${image}\nENV FORM=old\n`,
    },
    command: "echo $FORM",
    output: "old",
  },
  {
    name: "compose-build",
    title: "a service of a compose file that is built",
    files: {
      [DEV]: json({
        dockerComposeFile: "../compose.yaml",
        service: "app",
        workspaceFolder: "/workspaces/compose-build",
      }),
      "compose.yaml":
        "services:\n  app:\n    build: { context: ., dockerfile: dev.Dockerfile }\n    environment: [MODE=composed]\n  db: { image: postgres }\n",
      "dev.Dockerfile": `FROM ${image}\nENV FROM_FILE=yes\n`,
    },
    command: "echo $MODE $FROM_FILE",
    output: "composed yes",
  },
  {
    name: "compose-image",
    title: "a service of a compose file with an image",
    files: {
      [DEV]: json({ dockerComposeFile: ["../compose.yaml"], service: "web" }),
      "compose.yaml": `services:\n  web:\n    image: ${image}\n    environment: { MODE: served }\n`,
    },
    command: "echo $MODE",
    output: "served",
  },
  {
    name: "ports-only",
    title: "only ports and a start command, so that the language selects the image",
    files: {
      [DEV]: json({ forwardPorts: [8000], postStartCommand: "echo up >up", waitFor: "postStartCommand" }),
      "requirements.txt": "",
    },
    command: "cat up",
    output: "up",
    app: "Port 8000",
    localOutput: "up",
  },
  {
    name: "alone",
    title: "a Dockerfile alone",
    files: { Dockerfile: `FROM ${image}\nENV ALONE=yes\n`, "main.go": "" },
    command: "echo $ALONE",
    output: "yes",
  },
  {
    name: "stages",
    title: "a Dockerfile of several stages that copy from each other",
    files: {
      Dockerfile: `FROM ${image} AS make\nRUN echo made >/tmp/out\nFROM ${image}\nCOPY --from=make /tmp/out /out\n`,
    },
    command: "cat /out",
    output: "made",
  },
  {
    name: "gitpod",
    title: ".gitpod.yml with its own image, tasks and ports",
    files: {
      ".gitpod.yml":
        "image: { file: .gitpod.Dockerfile }\ntasks:\n  - { name: Web, init: 'echo init >>tasks', command: 'echo run >>tasks' }\nports: [{ port: 3000, name: Web }]\n",
      ".gitpod.Dockerfile": `FROM ${image}\n`,
    },
    command: "until grep -qs run tasks; do sleep 0.1; done; echo $(cat tasks)",
    output: "init run",
    app: "Web",
    localOutput: "init run",
  },
  {
    name: "devfile",
    title: "devfile.yaml",
    files: {
      "devfile.yaml": `schemaVersion: 2.2.0\nmetadata: { name: tools }\ncomponents:\n  - name: tools\n    container: { image: '${image}', env: [{ name: A, value: b }], endpoints: [{ name: http, targetPort: 8080 }] }\ncommands: [{ id: init, exec: { component: tools, commandLine: 'echo began >began' } }]\nevents: { postStart: [init] }\n`,
    },
    command: "until [ -s began ]; do sleep 0.1; done; echo $A $(cat began)",
    output: "b began",
    app: "http",
    localOutput: "b began",
  },
  {
    name: "flake",
    title: "flake.nix and a language",
    files: { "flake.nix": "{}", "Cargo.toml": "" },
    command: "ls Cargo.toml",
    output: "Cargo.toml",
  },
  {
    name: "folder",
    title: "a folder with its own configuration",
    files: {
      "web/.devcontainer/devcontainer.json": json({ image, remoteEnv: { PART: "web" } }),
      [DEV]: json({ image, remoteEnv: { PART: "all" } }),
    },
    request: { path: "web" },
    command: "echo $PART $(basename $PWD)",
    output: "web web",
  },
  {
    name: "stray",
    title: "an invalid configuration, so that the language selects the image",
    files: { [DEV]: "devcontainer: {}", "go.mod": "module stray" },
    command: "ls go.mod",
    output: "go.mod",
  },
];
