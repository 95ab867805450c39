// Configuration of coding agents, and permission to start chats with them.
import { expect, test } from "bun:test";
import type { Static } from "@sinclair/typebox";
import { updateTemplate } from "#db/templates/templates.ts";
import { findWorkspaceAccessRow } from "#db/workspaces/workspaces.ts";
import type { AvailableAgents, CodingAgents } from "#schema/ai/coding-agents.ts";
import type { AuditLogs } from "#schema/audit.ts";
import type { Template } from "#schema/templates/template.ts";
import { Client } from "#src/client.ts";
import { TEST_AGENT } from "#test/support/acp/agent-world.ts";
import { openChatWorld } from "#test/support/chats.ts";
import { forFile } from "#test/support/for-file.ts";
import { getContext, seedAgent, seedUser } from "#test/support/seed.ts";
import { ECHO, makeTemplate, uniqueText } from "#test/support/templates.ts";
import { seedTemplate } from "#test/support/workspaces.ts";

const world = await forFile(openChatWorld());
const { owner: member, organization_id } = world;
const AGENTS = "/api/v2/ai/agents";
const { token } = await seedUser(world.server, { roles: ["owner"] });
const admin = new Client(world.server.url, token);
const fetchStatus = async (client: Client, method: string, path: string, body?: unknown) =>
  (await client.fetch(method, path, body)).status;

test("[CA-12] owners add, change and delete agents; presets start disabled and reappear when they are deleted", async () => {
  const { agents } = await admin.get<CodingAgents>(AGENTS);
  expect(agents.map(({ name, enabled, is_preset }) => [name, enabled, is_preset])).toEqual(
    ["claude-code", "codex", "opencode", "gemini"].map((name) => [name, false, true]),
  );
  expect(await member.get<AvailableAgents>(`${AGENTS}/available`)).toEqual({ agents: [] });
  const { name: _, is_preset: __, ...codex } = agents[1] as (typeof agents)[number];
  await admin.put<unknown>(`${AGENTS}/codex`, Object.assign({}, codex, { enabled: true, display_name: "Our Codex" }));
  await admin.put<unknown>(`${AGENTS}/mine`, TEST_AGENT);
  expect((await member.get<AvailableAgents>(`${AGENTS}/available`)).agents).toEqual([
    { name: "codex", display_name: "Our Codex", icon: "", dialect: "openai" },
    { name: "mine", display_name: "Test agent", icon: "", dialect: "openai" },
  ]);
  expect(await fetchStatus(admin, "DELETE", `${AGENTS}/mine`)).toBe(204);
  expect(await fetchStatus(admin, "DELETE", `${AGENTS}/mine`)).toBe(404);
  expect(await fetchStatus(admin, "DELETE", `${AGENTS}/codex`)).toBe(204);
  expect((await admin.get<CodingAgents>(AGENTS)).agents).toEqual(agents);
});

test("[CA-12] other users can neither see nor change settings, and invalid settings are refused", async () => {
  expect(await fetchStatus(member, "GET", AGENTS)).toBe(403);
  expect(await fetchStatus(member, "PUT", `${AGENTS}/mine`, TEST_AGENT)).toBe(403);
  expect(await fetchStatus(member, "DELETE", `${AGENTS}/codex`)).toBe(403);
  const { command: _, ...withoutCommand } = TEST_AGENT;
  for (const body of [
    withoutCommand,
    { ...withoutCommand, command: "" },
    { ...TEST_AGENT, dialect: "morse" },
    { ...TEST_AGENT, variables: { "A B": "x" } },
  ]) {
    expect(await fetchStatus(admin, "PUT", `${AGENTS}/mine`, body)).toBe(400);
  }
  expect(await fetchStatus(admin, "PUT", `${AGENTS}/Not%20A%20Name`, TEST_AGENT)).toBe(400);
});

test("[CA-12] a chat with an agent requires a workspace and an enabled agent; a chat without one omits the field", async () => {
  const startChat = (fields: object) =>
    member.fetch(
      "POST",
      "/api/v2/chats",
      Object.assign({ organization_id, content: [{ type: "text", text: "x" }] }, fields),
    );
  expect((await startChat({ coding_agent: "codex" })).status).toBe(400);
  await admin.put<unknown>(`${AGENTS}/mine`, TEST_AGENT);
  const withoutWorkspace = await startChat({ coding_agent: "mine" });
  expect(withoutWorkspace.status).toBe(400);
  expect(await withoutWorkspace.text()).toContain("workspace_id");
  const withoutAgent = await startChat({});
  expect(withoutAgent.status).toBe(201);
  expect(await withoutAgent.json()).not.toHaveProperty("coding_agent");
});

const getDefaultAgent = async (query: Record<string, string>) =>
  (await member.get<AvailableAgents>(`${AGENTS}/available?${new URLSearchParams(query)}`)).default_agent;

test("[CA-32] a template names an enabled agent; one that is disabled or deleted stays named and shows the reason", async () => {
  await admin.put<unknown>(`${AGENTS}/mine`, TEST_AGENT);
  const { template_id } = await seedTemplate(world.server, undefined, { organization_id });
  const path = `/api/v2/templates/${template_id}`;
  const defaultAgent = { name: "mine", display_name: "Test agent", problem: "" };
  expect(await admin.get<Template>(path)).toMatchObject({ default_coding_agent: "" });
  expect(await getDefaultAgent({ template_id })).toBeUndefined();
  for (const name of ["codex", "nothing", "Not a name"]) {
    expect([name, await fetchStatus(admin, "PATCH", path, { default_coding_agent: name })]).toEqual([name, 400]);
  }
  expect(await fetchStatus(member, "PATCH", path, { default_coding_agent: "mine" })).toBe(403);
  expect(await admin.patch<Template>(path, { default_coding_agent: "mine" })).toMatchObject({
    default_coding_agent: "mine",
  });
  const { audit_logs } = await admin.get<Static<typeof AuditLogs>>("/api/v2/audit?q=resource_type:template&limit=10");
  const entry = audit_logs.find(({ resource_id, status_code }) => resource_id === template_id && status_code < 400);
  expect(entry?.diff.default_coding_agent).toEqual({ old: "", new: "mine", secret: false });
  expect(await getDefaultAgent({ template_id })).toEqual(defaultAgent);

  await admin.put<unknown>(`${AGENTS}/mine`, Object.assign({}, TEST_AGENT, { enabled: false }));
  const disabledProblem = 'The coding agent "Test agent" is disabled.';
  expect(await getDefaultAgent({ template_id })).toEqual(Object.assign({}, defaultAgent, { problem: disabledProblem }));
  // Other changes keep the default, even if they include its current name.
  expect(await fetchStatus(admin, "PATCH", path, { default_coding_agent: "mine", description: "x" })).toBe(200);
  await admin.delete(`${AGENTS}/mine`);
  const deletedAgent = { name: "mine", display_name: "mine", problem: 'There is no coding agent "mine".' };
  expect(await getDefaultAgent({ template_id })).toEqual(deletedAgent);
  expect(await admin.patch<Template>(path, { default_coding_agent: "" })).toMatchObject({ default_coding_agent: "" });
});

test("[CA-32] people who can see a workspace can read its default agent; a chat that names no agent has none", async () => {
  await admin.put<unknown>(`${AGENTS}/mine`, TEST_AGENT);
  const { workspace_id, owner_token } = await seedAgent(world.server);
  const owner = new Client(world.server.url, owner_token);
  const workspace = await getContext(world.server).store.get(findWorkspaceAccessRow({ id: workspace_id }));
  const template_id = workspace?.template_id ?? "";
  const setDefault = updateTemplate(template_id, { default_coding_agent: "mine" }, { expect: 1 });
  await getContext(world.server).store.commit([setDefault]);
  const path = `${AGENTS}/available?workspace_id=${workspace_id}`;
  expect((await owner.get<AvailableAgents>(path)).default_agent?.name).toBe("mine");
  expect(await fetchStatus(member, "GET", path)).toBe(404);
  expect(await fetchStatus(owner, "GET", `${path}&template_id=${template_id}`)).toBe(400);
  const body = {
    organization_id: workspace?.organization_id,
    workspace_id,
    content: [{ type: "text", text: "x" }],
  };
  const created = await owner.fetch("POST", "/api/v2/chats", body);
  expect([created.status, await created.json()]).toEqual([201, expect.not.objectContaining({ coding_agent: "mine" })]);
});

test("[CA-32] a template starts with the default agent of its template.yaml, which must be enabled", async () => {
  await admin.put<unknown>(`${AGENTS}/mine`, TEST_AGENT);
  const createTemplate = (agent: string, fields: object = {}) =>
    makeTemplate(admin, `${uniqueText()}default_coding_agent: ${agent}\n${ECHO}`, fields);
  expect(await createTemplate("mine")).toMatchObject({ default_coding_agent: "mine" });
  await expect(createTemplate("codex")).rejects.toMatchObject({
    status: 400,
    body: { message: 'The coding agent "Codex" is disabled.' },
  });
  expect(await createTemplate("codex", { default_coding_agent: "" })).toMatchObject({ default_coding_agent: "" });
});
