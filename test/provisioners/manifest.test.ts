// template.yaml: which manifests are rejected, with the line and message.
import { describe, expect, test } from "bun:test";
import { formatProblem, parseManifest } from "#src/provisioners/manifest.ts";

const listProblems = (text: string): string[] =>
  parseManifest(text).problems.map((problem) => formatProblem("template.yaml", problem));

const AGENT = `provisioner: echo
resources:
  - name: main
    agents:
      - name: main
`;

/** The title, the manifest, and a part of its first error. */
const INVALID_MANIFESTS: [string, string, string][] = [
  ["nothing", "", "template.yaml line 1 must be a mapping with the key `provisioner` and the list `resources`"],
  ["a list", "- a\n- b\n", "template.yaml line 1 must be a mapping"],
  ["a tab", "provisioner: echo\nresources:\n\t- name: a\n", "line 3 is not valid YAML: tab characters"],
  ["an open bracket", "provisioner: echo\ntags: {a: 1\nresources: []\n", "line 2 is not valid YAML"],
  ["two colons", "provisioner: echo\nresources:\n  - name: a: b\n", "line 3 is not valid YAML"],
  ["a missing key", "provisioner: echo\n", "line 1: resources: is missing"],
  ["an unknown key", `${AGENT}colour: red\n`, "line 6: colour: is not a known key here"],
  ["a key given twice", `${AGENT}provisioner: local\n`, "line 6: provisioner: is given twice"],
  [
    "an unknown provisioner",
    "provisioner: magic\nresources:\n  - name: a\n",
    "line 1: provisioner: must be one of local,",
  ],
  ["no resources", "provisioner: echo\nresources: []\n", "line 2: resources: must have at least one entry"],
  ["a wrong type", "provisioner: echo\nresources: 5\n", "line 2: resources: must be a list"],
  [
    "an empty agent name",
    AGENT.replace("- name: main\n    agents", "- name: m\n    agents").replace(/main\n$/, '""\n'),
    "line 5: resources.0.agents.0.name: must",
  ],
  ["a bad agent name", AGENT.replace(/main\n$/, "my agent\n"), "line 5: resources.0.agents.0.name: must match ^"],
  ["a nameless agent", `${AGENT}      - os: linux\n`, "line 6: resources.0.agents.1.name: is missing"],
  [
    "a negative timeout",
    `${AGENT}        scripts:\n          - display_name: Start\n            script: |\n              timeout: 3\n              true\n            timeout: -1\n`,
    "line 11: resources.0.agents.0.scripts.0.timeout: must be a whole number from 0 to 2592000",
  ],
  [
    "two agents of one name",
    `${AGENT}      - name: MAIN\n`,
    "line 6: resources.0.agents.1.name: there is another agent named MAIN",
  ],
  [
    "two resources of one name",
    `${AGENT}  - name: main\n`,
    "line 6: resources.1.name: there is another resource named main",
  ],
  [
    "two apps of one slug",
    `${AGENT}        apps:\n          - slug: web\n          - slug: web\n`,
    "line 8: resources.0.agents.0.apps.1.slug: there is another app named web",
  ],
  [
    "two devcontainers of one name",
    `${AGENT}        devcontainers:\n          - {name: app, workspace_folder: app}\n          - {name: App, workspace_folder: other}\n`,
    "line 8: resources.0.agents.0.devcontainers.1.name: there is another devcontainer named App",
  ],
  [
    "a devcontainer without a folder",
    `${AGENT}        devcontainers: [{name: app}]\n`,
    "line 6: resources.0.agents.0.devcontainers.0.workspace_folder: is missing",
  ],
  [
    "two parameters that share an environment variable",
    `${AGENT}parameters:\n  - name: my-size\n    default: a\n  - {name: MY_SIZE, default: b}\n`,
    "line 9: parameters.1.name: there is another parameter named MY_SIZE",
  ],
  [
    "an unknown placeholder",
    `${AGENT}        directory: /home/{{ parameters.user }}\n`,
    "line 6: resources.0.agents.0.directory: {{ parameters.user }} is not known",
  ],
  [
    "a preset of an unknown parameter",
    `${AGENT}presets:\n  - name: big\n    parameters:\n      size: "9"\n`,
    "line 9: presets.0.parameters.size: there is no parameter of this name",
  ],
  [
    "a preset with a bad value",
    `${AGENT}parameters:\n  - {name: size, type: number, default: 1, validation: {max: 4}}\npresets:\n  - name: big\n    parameters: {size: 9}\n`,
    "line 10: presets.0.parameters.size: must be at most 4",
  ],
  [
    "a default that is not a number",
    `${AGENT}parameters:\n  - name: size\n    type: number\n    default: large\n`,
    "line 9: parameters.0.default: must be a number in digits, such as 5 or -0.5",
  ],
  [
    "a default outside its options",
    `${AGENT}parameters:\n  - name: size\n    default: c\n    options:\n      - {name: A, value: a}\n      - {name: B, value: b}\n`,
    "line 8: parameters.0.default: must be one of a, b",
  ],
  [
    "a pattern that does not compile",
    `${AGENT}parameters:\n  - name: size\n    validation:\n      regex: "(a"\n`,
    "line 9: parameters.0.validation.regex: the pattern has a ( without )",
  ],
  [
    "a pattern that only backtracking can match",
    `${AGENT}parameters:\n  - name: size\n    validation:\n      regex: '^(.)\\1$'\n`,
    "line 9: parameters.0.validation.regex: the pattern uses a back-reference, which is not supported",
  ],
  [
    "min above max",
    `${AGENT}parameters:\n  - name: size\n    type: number\n    validation: {min: 5, max: 1}\n`,
    "line 9: parameters.0.validation.min: is larger than max",
  ],
  [
    "a pattern for a number",
    `${AGENT}parameters:\n  - name: size\n    type: number\n    validation:\n      regex: a\n`,
    "line 10: parameters.0.validation.regex: is only for parameters of type string",
  ],
  [
    "an ephemeral parameter that cannot change",
    `${AGENT}parameters:\n  - name: once\n    ephemeral: true\n    default: a\n`,
    "line 8: parameters.0.ephemeral: an ephemeral parameter must be mutable",
  ],
  [
    "a form that does not fit",
    `${AGENT}parameters:\n  - name: on\n    type: bool\n    form_type: slider\n`,
    "line 9: parameters.0.form_type: a parameter of type bool takes",
  ],
  [
    "a cron text",
    `${AGENT}        scripts:\n          - display_name: S\n            script: "true"\n            cron: every day\n`,
    "line 9: resources.0.agents.0.scripts.0.cron: is not a schedule such as",
  ],
  [
    "metadata keys",
    `${AGENT}        metadata:\n          - {key: cpu, script: a, interval: 1}\n          - {key: cpu, script: b, interval: 1}\n`,
    "line 8: resources.0.agents.0.metadata.1.key: there is another metadata entry named cpu",
  ],
  [
    "an environment name",
    `${AGENT}        env:\n          "A B": c\n`,
    "line 7: resources.0.agents.0.env.A B: is not a name of an environment variable",
  ],
  [
    "a token that is not for tests",
    "provisioner: local\nresources:\n  - name: a\n    agents:\n      - name: b\n        token: 6f5902ac-237d-4d0c-9d5a-0b0c3a1c5c0e\n",
    "line 6: resources.0.agents.0.token: is only for the provisioner echo",
  ],
  [
    "echo settings elsewhere",
    "provisioner: local\nresources:\n  - {name: a, agents: [{name: main}]}\necho: {hang: true}\n",
    "line 4: echo: is only for",
  ],
  [
    "an app that is a script",
    `${AGENT}        apps:\n          - {slug: x, url: "javascript:alert(1)", external: true}\n`,
    "line 7: resources.0.agents.0.apps.0.url: must not be a script",
  ],
  ["a token that is no UUID", `${AGENT}        token: secret\n`, "line 6: resources.0.agents.0.token: must be a UUID"],
];

describe("invalid manifests", () => {
  test.each(INVALID_MANIFESTS)("[TP-8][TP-9][TP-10][TP-11] %s", (_, text, expected) => {
    const [problem = "no problem"] = listProblems(text);
    expect(problem).toContain(expected);
  });

  test("[TP-8] at most twenty problems are reported, in the order of their lines", () => {
    const unknownKeys = Array.from({ length: 40 }, (_, i) => `wrong${i}: 1`).join("\n");
    const problems = listProblems(`${AGENT}${unknownKeys}\n`);
    expect(problems).toHaveLength(20);
    expect(problems[0]).toContain("line 6: wrong0");
    expect(problems[1]).toContain("line 7: wrong1");
  });
});

describe("manifests that are too expensive", () => {
  const makeNestedYaml = (depth: number, width: number): string => {
    const makeList = (item: string) => `[${Array(width).fill(item).join(",")}]`;
    let text = `a0: &a0 ${makeList("x")}\n`;
    for (let i = 1; i < depth; i++) text += `a${i}: &a${i} ${makeList(`*a${i - 1}`)}\n`;
    return text;
  };

  test.each([
    ["aliases that unfold to a billion", makeNestedYaml(9, 10)],
    ["aliases that unfold to a million", makeNestedYaml(6, 10)],
    ["brackets without end", "[".repeat(200_000)],
    ["deep indentation", Array.from({ length: 700 }, (_, i) => `${" ".repeat(i)}a:`).join("\n")],
    ["a file that is too large", `${AGENT}#${"x".repeat(600_000)}\n`],
    [
      "one text used by many scripts",
      `${AGENT}        env: {A: &a "${"x".repeat(4000)}", ${Array.from({ length: 2000 }, (_, i) => `B${i}: *a`).join(", ")}}\n`,
    ],
  ])("[TP-26] %s", (_, text) => {
    expect(listProblems(text)).toHaveLength(1);
  });

  test("[TP-26] a name such as __proto__ is a key like any other", () => {
    expect(listProblems(`${AGENT}__proto__: {polluted: 1}\n`)).toEqual([
      "template.yaml line 6: __proto__: is not a known key here",
    ]);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });
});

test("[TP-10] a manifest with most kinds of entries is parsed completely", () => {
  const { manifest, problems } = parseManifest(`
provisioner: echo
tags: {pool: big}
variables:
  - {name: region, default: eu, type: string}
parameters:
  - name: size
    type: number
    mutable: true
    default: 2
    validation: {min: 1, max: 8, monotonic: increasing, error: "between {min} and {max}"}
  - name: tools
    type: list(string)
    default: '["git"]'
    options: [{name: Git, value: git}, {name: Vim, value: vim}]
presets:
  - {name: Large, default: true, parameters: {size: 8}}
schedule: {default_ttl_ms: 3600000}
resources:
  - name: box
    daily_cost: 3
    metadata: [{key: Region, value: "{{ variables.region }}"}]
    agents:
      - name: main
        os: linux
        env: {SIZE: "{{ parameters.size }}"}
        scripts:
          - display_name: Names
            cron: "*/5 9-17 * * mon-fri"
            script: docker ps --format '\\{{.Names}}'
        apps: [{slug: web, url: "http://localhost:8080", healthcheck: {url: "http://localhost:8080/", interval: 5, threshold: 3}}]
`);
  expect(problems).toEqual([]);
  expect(manifest?.resources[0]?.agents?.[0]?.scripts?.[0]?.cron).toBe("*/5 9-17 * * mon-fri");
  expect(manifest?.parameters?.map(({ name }) => name)).toEqual(["size", "tools"]);
});

test("[TP-8] the example in the README of the format is a valid template", async () => {
  const readme = await Bun.file(new URL("../../src/provisioners/README.md", import.meta.url)).text();
  const [, example = ""] = /```yaml\n([\s\S]*?)```/.exec(readme) ?? [];
  expect(listProblems(example)).toEqual([]);
  expect(listProblems("")).not.toEqual([]);
});

const makeContainerManifest = (inner: string): string => `provisioner: docker
resources:
  - name: dev
    docker: {image: "debian:13", ${inner}}
    agents: [{name: main}]
`;

test.each([
  [makeContainerManifest("memory: lots"), "resources.0.docker.memory: must be an amount such as 512m or 4g"],
  [makeContainerManifest("cpus: 0"), "resources.0.docker.cpus: must be a number above 0, such as 0.5"],
  [makeContainerManifest("env: {SLIPWAY_AGENT_TOKEN: x}"), "is set by the server"],
  [makeContainerManifest('env: {"a b": x}'), "is not a name of an environment variable"],
  [makeContainerManifest("labels: {slipway.workspace_id: x}"), "is set by the server"],
  [
    makeContainerManifest("volumes: [{name: a, path: /x}, {name: b, path: /x}]"),
    "resources.0.docker.volumes.1.path: another volume is mounted there",
  ],
  [makeContainerManifest("volumes: [{name: a, path: x}]"), "resources.0.docker.volumes.0.path: must match ^/.+"],
  [makeContainerManifest("privileged: true"), "resources.0.docker.privileged: is not a known key here"],
  [
    "provisioner: docker\nresources: [{name: a, agents: [{name: b}]}]",
    "resources.0.agents: needs a container: the key docker",
  ],
  [
    "provisioner: docker\nresources: [{name: a, docker: {image: b}, agents: [{name: c}, {name: d}]}]",
    "a container has at most one agent",
  ],
  [
    "provisioner: echo\nresources: [{name: a, docker: {image: b}}]",
    "resources.0.docker: is only for the provisioner docker",
  ],
  [
    "provisioner: external\nresources: [{name: a}]",
    "external: is missing: it names the provisioner that a worker uses",
  ],
  [
    "provisioner: external\nexternal: {provisioner: echo}\ntags: {provisioner: x}\nresources: [{name: a}]",
    "tags.provisioner: is set by the server",
  ],
  ["provisioner: echo\ntags: {place: x}\nresources: [{name: a}]", "tags.place: is set by the server"],
  [
    "provisioner: local\nexternal: {provisioner: echo}\nresources: [{name: a}]",
    "external: is only for the provisioner external",
  ],
])("[PV-7] the parser refuses a template that cannot become containers or run on a worker: %#", (text, reason) => {
  const { problems } = parseManifest(text);
  expect(problems.map(({ path, reason }) => `${path}: ${reason}`).join("\n")).toContain(reason);
});

test("[PV-7] the parser accepts documented containers and workers, with placeholders in any text", () => {
  const docker = `provisioner: docker
parameters: [{name: size, default: 2g}]
resources:
  - name: dev
    docker: {image: "debian:{{ parameters.size }}", memory: "{{ parameters.size }}", cpus: "{{ parameters.size }}", volumes: [{name: home, path: /home}]}
    agents: [{name: main}]
  - {name: db, docker: {image: postgres, command: [postgres]}}
`;
  expect(parseManifest(docker).problems).toEqual([]);
  const external =
    "provisioner: external\nexternal: {provisioner: echo}\ntags: {region: eu}\necho: {hang: true}\nresources: [{name: a, agents: [{name: b, token: 6f1c9f0a-1111-4222-8333-444455556666}]}]";
  expect(parseManifest(external).problems).toEqual([]);
});
