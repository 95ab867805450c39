// Twenty kinds of real repositories, reduced: their files, a command in the workspace, and its output. Base images are names of the git
// image in the tests' engine.
import type { RepositoryAsked } from "#schema/templates/repository.ts";
import { GIT_IMAGE } from "#test/support/docker/git-image.ts";

const DEV = ".devcontainer/devcontainer.json";
const json = (value: unknown): string => JSON.stringify(value);
const image = GIT_IMAGE;

export type Shape = {
  readonly name: string;
  readonly title: string;
  readonly files: Readonly<Record<string, string>>;
  readonly asked?: Partial<RepositoryAsked>;
  /** A shell line, and its output in the workspace. */
  readonly look: string;
  readonly shows: string;
  /** The title of the app created for a port. */
  readonly app?: string;
  /** The line's output in a workspace without Docker, for repositories that need nothing from an image. */
  readonly local?: string;
};

/** The images selected by programming language. */
export const LANGUAGE_IMAGES = [
  "mcr.microsoft.com/devcontainers/go:1.25",
  "mcr.microsoft.com/devcontainers/python:3.13",
  "mcr.microsoft.com/devcontainers/rust:1",
];

/** `tool` is the ID of a feature in a registry, which writes its option to the file /tool. */
export const shapes = (tool: string): readonly Shape[] => [
  {
    name: "image",
    title: "an image and a name, with comments and trailing commas",
    files: { [DEV]: `// Ours\n{ "name": "Go", /* one */ "image": "${image}", "containerEnv": { "KIND": "plain", }, }` },
    look: "echo $KIND $(basename $PWD)",
    shows: "plain image",
    local: "plain image",
  },
  {
    name: "few-properties",
    title: "an image with a user and a variable",
    files: { ".devcontainer.json": json({ image, remoteUser: "root", remoteEnv: { MODE: "dev" } }) },
    look: "echo $(id -un) $MODE",
    shows: "root dev",
  },
  {
    name: "feature",
    title: "an image with a feature of a registry",
    files: { [DEV]: json({ image, features: { [tool]: { color: "green" } } }) },
    look: "cat /tool",
    shows: "green",
  },
  {
    name: "own-feature",
    title: "an image with a feature of its own, ports and a command",
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
    look: "echo $(cat /own) $OWN $(cat created)",
    shows: "own yes done",
    app: "Web",
  },
  {
    name: "mounts",
    title: "a mount of its own for the clone, a volume and variables",
    files: {
      [DEV]: json({
        image,
        workspaceMount: `source=\${localWorkspaceFolder},target=/src/app,type=bind`,
        workspaceFolder: "/src/app",
        mounts: ["source=cache,target=/cache,type=volume"],
        remoteEnv: { WHERE: `\${containerWorkspaceFolder}/bin` },
      }),
    },
    look: "touch /cache/x && echo $PWD $WHERE",
    shows: "/src/app /src/app/bin",
  },
  {
    name: "commands",
    title: "commands as lines, lists and side by side",
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
    look: "echo $(cat order web.txt api.txt)",
    shows: "create post start web api",
    local: "create post start web api",
  },
  {
    name: "dockerfile",
    title: "a Dockerfile next to the configuration",
    files: {
      [DEV]: json({ build: { dockerfile: "Dockerfile" } }),
      ".devcontainer/Dockerfile": `FROM ${image}\nENV BUILT=here\n`,
    },
    look: "echo $BUILT",
    shows: "here",
  },
  {
    name: "args",
    title: "a Dockerfile with arguments and a stage",
    files: {
      [DEV]: json({ build: { dockerfile: "Dockerfile", context: "..", args: { WORD: "spoken" }, target: "dev" } }),
      ".devcontainer/Dockerfile": `FROM ${image} AS dev\nARG WORD\nENV WORD=$WORD\nFROM dev\nENV WORD=last\n`,
    },
    look: "echo $WORD",
    shows: "spoken",
  },
  {
    name: "context",
    title: "a Dockerfile that copies files of the repository",
    files: {
      [DEV]: json({ build: { dockerfile: "Dockerfile", context: ".." } }),
      ".devcontainer/Dockerfile": `FROM ${image}\nCOPY docs/word.txt /word.txt\n`,
      "docs/word.txt": "copied\n",
    },
    look: "cat /word.txt",
    shows: "copied",
  },
  {
    name: "old-form",
    title: "dockerFile and context at the top, as it was written once",
    files: {
      [DEV]: json({ dockerFile: "../docker/dev.Dockerfile", context: "../docker" }),
      "docker/dev.Dockerfile": `FROM ${image}\nENV FORM=old\n`,
    },
    look: "echo $FORM",
    shows: "old",
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
    look: "echo $MODE $FROM_FILE",
    shows: "composed yes",
  },
  {
    name: "compose-image",
    title: "a service of a compose file with an image",
    files: {
      [DEV]: json({ dockerComposeFile: ["../compose.yaml"], service: "web" }),
      "compose.yaml": `services:\n  web:\n    image: ${image}\n    environment: { MODE: served }\n`,
    },
    look: "echo $MODE",
    shows: "served",
  },
  {
    name: "ports-only",
    title: "nothing but ports and a start command, so that the language decides",
    files: {
      [DEV]: json({ forwardPorts: [8000], postStartCommand: "echo up >up", waitFor: "postStartCommand" }),
      "requirements.txt": "",
    },
    look: "cat up",
    shows: "up",
    app: "Port 8000",
    local: "up",
  },
  {
    name: "alone",
    title: "a Dockerfile alone",
    files: { Dockerfile: `FROM ${image}\nENV ALONE=yes\n`, "main.go": "" },
    look: "echo $ALONE",
    shows: "yes",
  },
  {
    name: "stages",
    title: "a Dockerfile of several stages that copy from each other",
    files: {
      Dockerfile: `FROM ${image} AS make\nRUN echo made >/tmp/out\nFROM ${image}\nCOPY --from=make /tmp/out /out\n`,
    },
    look: "cat /out",
    shows: "made",
  },
  {
    name: "gitpod",
    title: ".gitpod.yml with an image of its own, tasks and ports",
    files: {
      ".gitpod.yml":
        "image: { file: .gitpod.Dockerfile }\ntasks:\n  - { name: Web, init: 'echo init >>tasks', command: 'echo run >>tasks' }\nports: [{ port: 3000, name: Web }]\n",
      ".gitpod.Dockerfile": `FROM ${image}\n`,
    },
    look: "until grep -qs run tasks; do sleep 0.1; done; echo $(cat tasks)",
    shows: "init run",
    app: "Web",
    local: "init run",
  },
  {
    name: "devfile",
    title: "devfile.yaml",
    files: {
      "devfile.yaml": `schemaVersion: 2.2.0\nmetadata: { name: tools }\ncomponents:\n  - name: tools\n    container: { image: '${image}', env: [{ name: A, value: b }], endpoints: [{ name: http, targetPort: 8080 }] }\ncommands: [{ id: init, exec: { component: tools, commandLine: 'echo began >began' } }]\nevents: { postStart: [init] }\n`,
    },
    look: "until [ -s began ]; do sleep 0.1; done; echo $A $(cat began)",
    shows: "b began",
    app: "http",
    local: "b began",
  },
  {
    name: "flake",
    title: "flake.nix and a language",
    files: { "flake.nix": "{}", "Cargo.toml": "" },
    look: "ls Cargo.toml",
    shows: "Cargo.toml",
  },
  {
    name: "folder",
    title: "a folder with a configuration of its own",
    files: {
      "web/.devcontainer/devcontainer.json": json({ image, remoteEnv: { PART: "web" } }),
      [DEV]: json({ image, remoteEnv: { PART: "all" } }),
    },
    asked: { path: "web" },
    look: "echo $PART $(basename $PWD)",
    shows: "web web",
  },
  {
    name: "stray",
    title: "a configuration that cannot be read, so that the language decides",
    files: { [DEV]: "devcontainer: {}", "go.mod": "module stray" },
    look: "ls go.mod",
    shows: "go.mod",
  },
];
