// The {{ }} placeholders of templates: which values they insert, and that no value becomes code.
import { expect, test } from "bun:test";
import type { Manifest, ManifestAgent } from "#schema/templates/manifest.ts";
import { parseManifest } from "#src/provisioners/manifest.ts";
import { renderManifest } from "#src/provisioners/render.ts";

const renderAgent = (agentYaml: string, parameters: Record<string, string> = {}): ManifestAgent => {
  const names = Object.keys(parameters).map((name) => `  - {name: ${name}, default: ""}\n`);
  const { manifest, problems } = parseManifest(
    `provisioner: echo\nvariables:\n  - {name: region, default: eu}\n  - {name: secret, default: s}\n${names.length > 0 ? `parameters:\n${names.join("")}` : ""}resources:\n  - name: a\n    agents:\n      - name: main\n${agentYaml}`,
  );
  if (!manifest) throw new Error(JSON.stringify(problems));
  const rendered = renderManifest(manifest, {
    parameters,
    variables: { region: "eu", secret: "s" },
    workspace: { id: "w-1", name: "dev" },
    owner: { username: "ann", email: "ann@example.com" },
  });
  return rendered.resources[0]?.agents?.[0] as ManifestAgent;
};

const HOSTILE = '\'; touch pwned; echo "$(touch pwned)`touch pwned`" #';

const runScript = async (agent: ManifestAgent, script: string): Promise<string> => {
  const child = Bun.spawn(["sh", "-c", script], {
    env: { PATH: process.env.PATH ?? "", ...agent.env },
    stdout: "pipe",
  });
  return child.stdout.text();
};

test("[TP-20] the shell never reads a value in a script as code, quoted or not", async () => {
  const agent = renderAgent(
    `        scripts:\n          - display_name: s\n            script: |\n              printf '%s\\n' "{{ parameters.name }}"\n              printf '%s\\n' {{parameters.name}}\n`,
    { name: HOSTILE },
  );
  const script = agent.scripts?.[0]?.script ?? "";
  expect(script).not.toContain("touch");
  const [quoted] = (await runScript(agent, script)).split("\n");
  expect(quoted).toBe(HOSTILE);
  expect(await Bun.file("pwned").exists()).toBe(false);
});

test("[TP-20] a script that is a single placeholder runs the value itself", async () => {
  const agent = renderAgent(`        scripts:\n          - {display_name: s, script: "{{ parameters.start }}"}\n`, {
    start: "echo one\necho two\n",
  });
  expect(await runScript(agent, agent.scripts?.[0]?.script ?? "")).toBe("one\ntwo\n");
});

test("[TP-20] metadata scripts and app commands also use environment variables, in PowerShell syntax on Windows", () => {
  const agent = renderAgent(
    `        os: windows\n        metadata:\n          - {key: k, interval: 1, script: "x {{ workspace.name }}"}\n        apps:\n          - {slug: a, command: "y {{ owner.username }}"}\n`,
  );
  expect(agent.metadata?.[0]?.script).toBe(`x $\{env:SLIPWAY_WORKSPACE_NAME}`);
  expect(agent.apps?.[0]?.command).toBe(`y $\{env:SLIPWAY_OWNER_USERNAME}`);
});

test("[TP-20] text outside scripts contains the value, and a backslash makes braces literal", () => {
  const agent = renderAgent(
    `        directory: /srv/{{workspace.name}}/{{ parameters.sub-dir }}\n        env: {A: "{{ owner.email }}", B: 'x \\{{ y }}'}\n`,
    { "sub-dir": "{{ owner.email }}" },
  );
  // A placeholder inside a value is not expanded.
  expect(agent.directory).toBe("/srv/dev/{{ owner.email }}");
  expect(agent.env).toMatchObject({ A: "ann@example.com", B: "x {{ y }}" });
});

test("[TP-20] the environment contains every parameter and the variables that scripts use; the template's env has priority", () => {
  const agent = renderAgent(
    `        env: {SLIPWAY_PARAM_SIZE: mine}\n        scripts:\n          - {display_name: s, script: "echo {{ variables.region }}"}\n`,
    { size: "3", "sub-dir": "d" },
  );
  expect(agent.env).toEqual({ SLIPWAY_PARAM_SIZE: "mine", SLIPWAY_PARAM_SUB_DIR: "d", SLIPWAY_VAR_REGION: "eu" });
});

test("[TP-38] values that are inserted too often fail a start, and a stop leaves some out", () => {
  const repeated = "{{ parameters.long }}".repeat(100);
  const yaml = `provisioner: echo\nparameters:\n  - {name: long, default: ""}\nresources:\n  - name: a\n    metadata:\n      - {key: k, value: "${repeated}"}\n`;
  const { manifest } = parseManifest(yaml);
  const values = {
    parameters: { long: "x".repeat(50_000) },
    variables: {},
    workspace: { id: "w-1", name: "dev" },
    owner: { username: "ann", email: "ann@example.com" },
  };
  expect(() => renderManifest(manifest as Manifest, values)).toThrow("inserts values of more than 524288 characters");
  const value = renderManifest(manifest as Manifest, values, false).resources[0]?.metadata?.[0]?.value;
  expect(value?.length).toBe(500_000);
});
