// The {{ }} placeholders of templates: where a value is allowed, and that no value becomes code.
import { expect, test } from "bun:test";
import type { Manifest, ManifestAgent } from "#schema/templates/manifest.ts";
import { parseManifest } from "#src/provisioners/manifest.ts";
import { renderManifest } from "#src/provisioners/render.ts";

const render = (agent: string, parameters: Record<string, string> = {}): ManifestAgent => {
  const names = Object.keys(parameters).map((name) => `  - {name: ${name}, default: ""}\n`);
  const { manifest, problems } = parseManifest(
    `provisioner: echo\nvariables:\n  - {name: region, default: eu}\n  - {name: secret, default: s}\n${names.length > 0 ? `parameters:\n${names.join("")}` : ""}resources:\n  - name: a\n    agents:\n      - name: main\n${agent}`,
  );
  if (!manifest) throw new Error(JSON.stringify(problems));
  const filled = renderManifest(manifest, {
    parameters,
    variables: { region: "eu", secret: "s" },
    workspace: { id: "w-1", name: "dev" },
    owner: { username: "ann", email: "ann@example.com" },
  });
  return filled.resources[0]?.agents?.[0] as ManifestAgent;
};

const HOSTILE = '\'; touch pwned; echo "$(touch pwned)`touch pwned`" #';

const runScript = async (agent: ManifestAgent, script: string): Promise<string> => {
  const child = Bun.spawn(["sh", "-c", script], {
    env: { PATH: process.env.PATH ?? "", ...agent.env },
    stdout: "pipe",
  });
  return child.stdout.text();
};

test("[TP-20] a value in a script is never read as code by the shell, quoted or not", async () => {
  const agent = render(
    `        scripts:\n          - display_name: s\n            script: |\n              printf '%s\\n' "{{ parameters.name }}"\n              printf '%s\\n' {{parameters.name}}\n`,
    { name: HOSTILE },
  );
  const script = agent.scripts?.[0]?.script ?? "";
  expect(script).not.toContain("touch");
  const [quoted] = (await runScript(agent, script)).split("\n");
  expect(quoted).toBe(HOSTILE);
  expect(await Bun.file("pwned").exists()).toBe(false);
});

test("[TP-20] a script that is one placeholder is the value itself", async () => {
  const agent = render(`        scripts:\n          - {display_name: s, script: "{{ parameters.start }}"}\n`, {
    start: "echo one\necho two\n",
  });
  expect(await runScript(agent, agent.scripts?.[0]?.script ?? "")).toBe("one\ntwo\n");
});

test("[TP-20] metadata scripts and commands are treated alike; Windows gets its own spelling", () => {
  const agent = render(
    `        os: windows\n        metadata:\n          - {key: k, interval: 1, script: "x {{ workspace.name }}"}\n        apps:\n          - {slug: a, command: "y {{ owner.username }}"}\n`,
  );
  expect(agent.metadata?.[0]?.script).toBe(`x $\{env:SLIPWAY_WORKSPACE_NAME}`);
  expect(agent.apps?.[0]?.command).toBe(`y $\{env:SLIPWAY_OWNER_USERNAME}`);
});

test("[TP-20] text outside of shells gets the value; literal braces are written with a backslash", () => {
  const agent = render(
    `        directory: /srv/{{workspace.name}}/{{ parameters.sub-dir }}\n        env: {A: "{{ owner.email }}", B: 'x \\{{ y }}'}\n`,
    { "sub-dir": "{{ owner.email }}" },
  );
  // A value is not expanded again.
  expect(agent.directory).toBe("/srv/dev/{{ owner.email }}");
  expect(agent.env).toMatchObject({ A: "ann@example.com", B: "x {{ y }}" });
});

test("[TP-20] every parameter is in the environment, a variable only where a script uses it, and the template's env wins", () => {
  const agent = render(
    `        env: {SLIPWAY_PARAM_SIZE: mine}\n        scripts:\n          - {display_name: s, script: "echo {{ variables.region }}"}\n`,
    { size: "3", "sub-dir": "d" },
  );
  expect(agent.env).toEqual({ SLIPWAY_PARAM_SIZE: "mine", SLIPWAY_PARAM_SUB_DIR: "d", SLIPWAY_VAR_REGION: "eu" });
});

test("[TP-38] values that are inserted too often fail a start, and are left out of a stop", () => {
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
