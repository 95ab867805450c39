// Plans for several kinds of real repositories, reduced to a few files.
import { expect, test } from "bun:test";
import { parsePlan, type RepositoryPlan } from "#schema/templates/repository.ts";
import { makePlan } from "./memory-files.ts";

const DEV = ".devcontainer/devcontainer.json";
const json = (value: unknown): string => JSON.stringify(value);
const listDropped = ({ dropped }: RepositoryPlan): string[] => dropped.map(({ property }) => property);

/** Kinds of public repositories: title, files, expected plan, and dropped properties. */
const SHAPES: readonly (readonly [string, Record<string, string>, Partial<RepositoryPlan>, string[]?])[] = [
  [
    "an image and a name, with comments and trailing commas",
    { [DEV]: '\uFEFF// Go\n{ "name": "Go", /* one */ "image": "mcr.microsoft.com/devcontainers/go:1", }' },
    { source: "devcontainer", title: "Go", image: "mcr.microsoft.com/devcontainers/go:1", configuration: DEV },
  ],
  [
    "an image with a feature, ports and a command",
    {
      ".devcontainer.json": json({
        image: "debian:13",
        features: { "ghcr.io/devcontainers/features/node:1": { version: "lts" }, "ghcr.io/acme/x:2": "1.2" },
        forwardPorts: [3000, "db:5432", "8443:8443", 9],
        portsAttributes: {
          "3000": { label: "Web", onAutoForward: "openBrowser" },
          "8443": { protocol: "https" },
          "9": { onAutoForward: "ignore" },
        },
        postCreateCommand: "npm ci",
      }),
    },
    {
      features: [
        { id: "ghcr.io/devcontainers/features/node:1", options: { version: "lts" } },
        { id: "ghcr.io/acme/x:2", options: { version: "1.2" } },
      ],
      ports: [
        { port: 3000, label: "Web", protocol: "http" },
        { port: 8443, label: "Port 8443", protocol: "https" },
      ],
      lifecycle: { on_create: [], update_content: [], post_create: [[{ run: "npm ci" }]], post_start: [] },
    },
    ["forwardPorts"],
  ],
  [
    "mounts and variables",
    {
      [DEV]: json({
        image: "debian:13",
        workspaceMount: `source=\${localWorkspaceFolder},target=/src,type=bind`,
        workspaceFolder: "/src/web",
        mounts: [
          "source=cargo,target=/home/vscode/.cargo,type=volume",
          "source=/var/run/docker.sock,target=/var/run/docker.sock,type=bind",
        ],
        containerEnv: {
          HERE: `\${containerWorkspaceFolder}/x`,
          TOKEN: `\${localEnv:TOKEN}`,
          USER_NAME: `\${localEnv:USER:dev}`,
          SLIPWAY_AGENT_TOKEN: "x",
        },
        remoteEnv: { PATH: `\${containerEnv:PATH}:/opt/bin` },
        remoteUser: "vscode",
      }),
    },
    {
      root: "/src",
      folder: "/src/web",
      user: "vscode",
      volumes: [{ name: "cargo", path: "/home/vscode/.cargo" }],
      container_env: { HERE: `\${containerWorkspaceFolder}/x`, TOKEN: "", USER_NAME: "dev" },
      remote_env: { PATH: `\${PATH}:/opt/bin` },
    },
    ["localEnv:TOKEN", "containerEnv.SLIPWAY_AGENT_TOKEN", "mounts"],
  ],
  [
    "commands as lists and in parallel",
    {
      [DEV]: json({
        image: "debian:13",
        onCreateCommand: ["make", "tools"],
        updateContentCommand: { web: "npm ci", api: ["go", "mod", "download"] },
        postStartCommand: "make up",
        postAttachCommand: "echo hi",
        waitFor: "postCreateCommand",
      }),
    },
    {
      wait_for: "post_create",
      lifecycle: {
        on_create: [[{ run: ["make", "tools"] }]],
        update_content: [
          [
            { name: "web", run: "npm ci" },
            { name: "api", run: ["go", "mod", "download"] },
          ],
        ],
        post_create: [],
        post_start: [[{ run: "make up" }]],
      },
    },
    ["postAttachCommand"],
  ],
  [
    "a Dockerfile with arguments and a stage",
    {
      [DEV]: json({
        build: {
          dockerfile: "Dockerfile",
          context: "..",
          args: { VARIANT: "3", N: 1 },
          target: "dev",
          options: ["--network=host"],
        },
      }),
      ".devcontainer/Dockerfile": "FROM debian:13 AS dev",
    },
    {
      build: expect.objectContaining({
        dockerfile: ".devcontainer/Dockerfile",
        context: "",
        args: { VARIANT: "3", N: "1" },
        target: "dev",
      }),
    },
    ["build.options"],
  ],
  [
    "dockerFile and context at the top level, the old format",
    {
      [DEV]: json({ dockerFile: "../docker/dev.Dockerfile", context: "../docker" }),
      "docker/dev.Dockerfile": "FROM debian:13",
    },
    { build: expect.objectContaining({ dockerfile: "docker/dev.Dockerfile", context: "docker" }) },
  ],
  [
    "a service of a compose file",
    {
      [DEV]: json({ dockerComposeFile: "../compose.yaml", service: "app", workspaceFolder: "/workspaces/app" }),
      "compose.yaml":
        "services:\n  app:\n    build: { context: ., dockerfile: dev.Dockerfile }\n    environment: [MODE=dev]\n    volumes: [.:/app]\n    network_mode: host\n  db: { image: postgres }\n",
      "dev.Dockerfile": "FROM debian:13",
    },
    { build: expect.objectContaining({ dockerfile: "dev.Dockerfile", context: "" }), container_env: { MODE: "dev" } },
    ["dockerComposeFile", "app.volumes", "app.network_mode"],
  ],
  [
    "only ports and a command, so that the language selects the image",
    { [DEV]: json({ forwardPorts: [8000], postStartCommand: "python -m http.server" }), "requirements.txt": "" },
    {
      source: "devcontainer",
      image: expect.stringContaining("/python:"),
      ports: [{ port: 8000, label: "Port 8000", protocol: "http" }],
    },
  ],
  [
    "a Dockerfile alone",
    { Dockerfile: "FROM debian:13", "main.go": "" },
    { source: "dockerfile", build: expect.objectContaining({ dockerfile: "Dockerfile", context: "" }) },
  ],
  [
    ".gitpod.yml",
    {
      ".gitpod.yml":
        "image: { file: .gitpod.Dockerfile }\ntasks:\n  - { name: Web, init: npm ci, command: npm start }\n  - command: make watch\nports: [{ port: 3000, name: Web }, { port: 9, onOpen: ignore }]\nvscode: { extensions: [dbaeumer.vscode-eslint] }\n",
      ".gitpod.Dockerfile": "FROM debian:13",
    },
    {
      source: "gitpod",
      build: expect.objectContaining({ dockerfile: ".gitpod.Dockerfile" }),
      lifecycle: {
        on_create: [],
        update_content: [],
        post_create: [[{ run: "npm ci" }]],
        post_start: [
          [
            { name: "Web", run: "npm start" },
            { name: "Task 2", run: "make watch" },
          ],
        ],
      },
      ports: [{ port: 3000, label: "Web", protocol: "http" }],
      extensions: ["dbaeumer.vscode-eslint"],
    },
  ],
  [
    "devfile.yaml",
    {
      "devfile.yaml":
        "schemaVersion: 2.2.0\nmetadata: { name: java }\ncomponents:\n  - name: tools\n    container: { image: 'quay.io/acme/tools:1', memoryLimit: 2Gi, env: [{ name: A, value: b }], endpoints: [{ name: http, targetPort: 8080 }, { name: no, targetPort: 1, exposure: none }] }\n  - { name: db, container: { image: postgres } }\ncommands: [{ id: init, exec: { component: tools, commandLine: mvn -v } }]\nevents: { postStart: [init] }\n",
    },
    {
      source: "devfile",
      title: "java",
      image: "quay.io/acme/tools:1",
      container_env: { A: "b" },
      wanted: { memory: "2Gi" },
      ports: [{ port: 8080, label: "http", protocol: "http" }],
      lifecycle: {
        on_create: [],
        update_content: [],
        post_create: [],
        post_start: [[{ name: "init", run: "mvn -v" }]],
      },
    },
    ["components"],
  ],
  [
    "flake.nix next to a language",
    { "flake.nix": "", "Cargo.toml": "" },
    { source: "language", image: expect.stringContaining("/rust:"), hints: [expect.stringContaining("nix develop")] },
  ],
  [
    "files of many kinds and no project file",
    { "a.py": "", "b.py": "", "c.js": "" },
    { source: "language", image: expect.stringContaining("/python:") },
  ],
  ["no files", {}, { source: "language", image: expect.stringContaining("/base:") }],
  [
    "a file that begins with stray text",
    { [DEV]: "devcontainer: {}" },
    { source: "devcontainer", image: expect.stringContaining("/base:") },
    [DEV],
  ],
  ["a list instead of an object", { [DEV]: "[]" }, { image: expect.stringContaining("/base:") }, [DEV]],
  [
    "invalid YAML",
    { ".gitpod.yml": "image: [", "go.mod": "" },
    { source: "gitpod", image: expect.stringContaining("/go:") },
    [".gitpod.yml"],
  ],
];

test.each(SHAPES as never[])(
  "[RW-2] [RW-3] [RW-4] plans %s",
  async (_title: string, files: Record<string, string>, expected: object, dropped: string[] = []) => {
    const plan = await makePlan(files);
    expect(listDropped(plan)).toEqual(dropped);
    expect(parsePlan(JSON.stringify(plan))).toEqual(plan);
    expect(plan).toMatchObject(expected);
  },
);

/** Settings that would affect the server's machine, each with the dropped property. */
const HOSTILE_SETTINGS: readonly (readonly [string, object])[] = [
  ["initializeCommand", { image: "a", initializeCommand: "id" }],
  ["runArgs", { image: "a", runArgs: ["--privileged"] }],
  ["privileged", { image: "a", privileged: true }],
  ["capAdd", { image: "a", capAdd: ["SYS_ADMIN"] }],
  ["securityOpt", { image: "a", securityOpt: ["seccomp=unconfined"] }],
  ["mounts", { image: "a", mounts: [{ type: "bind", source: "/", target: "/host" }] }],
  ["mounts", { image: "a", mounts: ["type=volume,source=x,target=/proc"] }],
  ["mounts", { image: "a", mounts: ["type=volume,source=x,target=/a/../etc"] }],
  ["build", { build: { dockerfile: "../../Dockerfile" } }],
  ["build", { build: { dockerfile: "/etc/passwd" } }],
  ["build", { build: { dockerfile: "Dockerfile", context: "../../.." } }],
  ["image", { image: "a/../../containers" }],
  ["remoteUser", { image: "a", remoteUser: "root --privileged" }],
  ["features.https://evil.example.com/f.tgz", { image: "a", features: { "https://evil.example.com/f.tgz": {} } }],
  ["features.../../f", { image: "a", features: { "../../f": {} } }],
  ["dockerComposeFile", { dockerComposeFile: "../../../compose.yaml", service: "a" }],
];

test.each(HOSTILE_SETTINGS as [string, object][])("[RW-3] drops %s of %j", async (property, devcontainer) => {
  const plan = await makePlan({ [DEV]: json(devcontainer), ".devcontainer/Dockerfile": "" });
  expect(listDropped(plan)).toContain(property);
  expect(json(plan.volumes) + json(plan.build ?? {}) + json(plan.features)).not.toMatch(/\/host|passwd|\.\.|evil/);
});

test("[RW-3] parses files quickly that are crafted to be slow", async () => {
  const unclosed = await makePlan({
    [DEV]: json({ image: "a", containerEnv: { A: "${localEnv:".repeat(20_000), B: "b" } }),
  });
  expect(unclosed.container_env).toMatchObject({ B: "b" });
  const repeatNineTimes = (item: string): string => `[${Array(9).fill(item).join(",")}]`;
  const levels = Array.from(
    { length: 10 },
    (_, index) => `a${index + 1}: &a${index + 1} ${repeatNineTimes(`*a${index}`)}`,
  );
  for (const file of [
    [`a0: &a0 ${repeatNineTimes("x")}`, ...levels].join("\n"),
    Array.from({ length: 15_000 }, (_, index) => (index === 0 ? "- &a0 x" : `- &a${index} [*a${index - 1}]`)).join(
      "\n",
    ),
  ])
    expect(listDropped(await makePlan({ ".gitpod.yml": file }))).toEqual([".gitpod.yml"]);
});

test("[RW-2] finds every devcontainer.json, reads the selected one, and searches the requested folder first", async () => {
  const files = {
    ".devcontainer/b/devcontainer.json": json({ name: "b", image: "b" }),
    ".devcontainer/a/devcontainer.json": json({ name: "a", image: "a" }),
    ".devcontainer/a/deeper/devcontainer.json": json({ name: "deeper" }),
    "web/.devcontainer.json": json({ name: "web", image: "w" }),
    "api/main.go": "",
  };
  const selected = ".devcontainer/b/devcontainer.json";
  const [first, second, web, api, missing] = await Promise.all([
    makePlan(files),
    makePlan(files, { configuration: selected }),
    makePlan(files, { path: "web" }),
    makePlan(files, { path: "api" }),
    makePlan(files, { configuration: "api/devcontainer.json" }),
  ]);
  expect(first.choices).toEqual([".devcontainer/a/devcontainer.json", selected]);
  expect([first, second, web, api, missing].map(({ title }) => title)).toEqual(["a", "b", "web", "a", "a"]);
  expect(listDropped(missing)).toEqual(["configuration"]);
});

test("[RW-5] rejects a plan with invalid values", async () => {
  const plan = await makePlan({});
  const invalidChanges: object[] = [
    { volumes: [{ name: "x", path: "relative" }] },
    { volumes: [{ name: "/", path: "/host" }] },
    { user: "root;id" },
    { url: 1 },
    { url: "app" },
    { url: "http://[/app" },
    { url: "ext::sh -c id" },
    { url: "file:///etc" },
    { commit: "--upload-pack=id" },
    { lifecycle: {} },
    { ports: [{ port: 0, label: "", protocol: "http" }] },
    { name: "../x" },
  ];
  for (const change of invalidChanges)
    expect(parsePlan(JSON.stringify(Object.assign({}, plan, change)))).toBeUndefined();
  expect(parsePlan("{")).toBeUndefined();
});
