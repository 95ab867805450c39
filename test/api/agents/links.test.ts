// Links that come from parameters or apps must not run code when people click them.
import { expect, test } from "bun:test";
import type { WorkspaceAgent } from "#schema/agents/agent.ts";
import { Client } from "#src/client.ts";
import { seedAgent } from "#test/support/seed.ts";
import { startTestServer } from "#test/support/server.ts";
import { makeTemplate, uniqueText } from "#test/support/templates.ts";
import { awaitBuild, createWorkspace, openWorld } from "#test/support/workspaces.ts";

const YAML = `provisioner: echo
parameters:
  - {name: p}
resources:
  - name: main
    agents:
      - name: main
        troubleshooting_url: "{{ parameters.p }}"
        apps:
          - {slug: one, external: true, url: "{{ parameters.p }}", icon: "{{ parameters.p }}", display_name: "x{{ parameters.p }}"}
`;
const CODE_URLS = [
  "javascript:alert(1)",
  " javascript:alert(1)",
  "JAVASCRIPT:alert(1)",
  "java\tscript:alert(1)",
  "data:text/html,x",
];

test("[TP-34] a URL from a parameter is dropped if it contains code, and otherwise unchanged", async () => {
  await using world = await openWorld();
  const { id: template } = await makeTemplate(world.admin, uniqueText() + YAML);
  const createAgentWithUrl = async (url: string, name: string) => {
    const rich_parameter_values = [{ name: "p", value: url }];
    const { id } = await createWorkspace(world.admin, template, name, { rich_parameter_values });
    return (await awaitBuild(world.admin, id)).latest_build.resources[0]?.agents[0];
  };
  for (const [i, url] of [...CODE_URLS, "https://ok/\u202ehcus"].entries()) {
    const agent = await createAgentWithUrl(url, `code-${i}`);
    expect([url, agent?.troubleshooting_url, agent?.apps[0]?.url, agent?.apps[0]?.icon]).toEqual([url, "", "", ""]);
    expect(agent?.apps[0]?.display_name).not.toContain("\u202e");
  }
  const editor = await createAgentWithUrl("vscode://open?a=b", "editor");
  expect([editor?.apps[0]?.url, editor?.troubleshooting_url]).toEqual(["vscode://open?a=b", "vscode://open?a=b"]);
});

test("[AP-3] a URL from an app is dropped if it contains code", async () => {
  await using server = await startTestServer();
  const seeded = await seedAgent(server, { apps: [{ slug: "web" }] });
  const agent = new Client(server.url, seeded.agent_token);
  const owner = new Client(server.url, seeded.owner_token);
  for (const uri of [...CODE_URLS, "https://example.com/pull/1", "file:///home/dev/x"]) {
    const report = { app_slug: "web", state: "working", message: "m\u202ex", uri };
    await agent.patch<unknown>("/api/v2/workspaceagents/me/app-status", report);
    const { apps } = await owner.get<WorkspaceAgent>(`/api/v2/workspaceagents/${seeded.agent_id}`);
    const status = apps[0]?.statuses[0];
    expect([uri, status?.uri, status?.message]).toEqual([uri, CODE_URLS.includes(uri) ? "" : uri, "mx"]);
  }
});
