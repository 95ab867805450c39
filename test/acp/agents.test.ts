// Setting coding agents up, and who may begin chats with them.
import { expect, test } from "bun:test";
import type { AvailableAgents, CodingAgents } from "#schema/ai/coding-agents.ts";
import { Client } from "#src/client.ts";
import { TEST_AGENT } from "#test/support/acp/agent-world.ts";
import { openChatWorld } from "#test/support/chats.ts";
import { forFile } from "#test/support/for-file.ts";
import { seedUser } from "#test/support/seed.ts";

const world = await forFile(openChatWorld());
const { owner: person, organization_id } = world;
const AGENTS = "/api/v2/ai/agents";
const { token } = await seedUser(world.server, { roles: ["owner"] });
const admin = new Client(world.server.url, token);
const statusOf = async (client: Client, method: string, path: string, body?: unknown) =>
  (await client.fetch(method, path, body)).status;

test("[CA-12] owners add, change and delete agents; presets are disabled at first and come back when they are deleted", async () => {
  const { agents } = await admin.get<CodingAgents>(AGENTS);
  expect(agents.map(({ name, enabled, is_preset }) => [name, enabled, is_preset])).toEqual(
    ["claude-code", "codex", "opencode", "gemini"].map((name) => [name, false, true]),
  );
  expect(await person.get<AvailableAgents>(`${AGENTS}/available`)).toEqual({ agents: [] });
  const { name: _, is_preset: __, ...codex } = agents[1] as (typeof agents)[number];
  await admin.put<unknown>(`${AGENTS}/codex`, Object.assign({}, codex, { enabled: true, display_name: "Our Codex" }));
  await admin.put<unknown>(`${AGENTS}/mine`, TEST_AGENT);
  expect((await person.get<AvailableAgents>(`${AGENTS}/available`)).agents).toEqual([
    { name: "codex", display_name: "Our Codex", icon: "", dialect: "openai" },
    { name: "mine", display_name: "Test agent", icon: "", dialect: "openai" },
  ]);
  expect(await statusOf(admin, "DELETE", `${AGENTS}/mine`)).toBe(204);
  expect(await statusOf(admin, "DELETE", `${AGENTS}/mine`)).toBe(404);
  expect(await statusOf(admin, "DELETE", `${AGENTS}/codex`)).toBe(204);
  expect((await admin.get<CodingAgents>(AGENTS)).agents).toEqual(agents);
});

test("[CA-12] others neither see settings nor change them, and what means nothing is refused", async () => {
  expect(await statusOf(person, "GET", AGENTS)).toBe(403);
  expect(await statusOf(person, "PUT", `${AGENTS}/mine`, TEST_AGENT)).toBe(403);
  expect(await statusOf(person, "DELETE", `${AGENTS}/codex`)).toBe(403);
  const { command: _, ...lacking } = TEST_AGENT;
  for (const body of [
    lacking,
    { ...lacking, command: "" },
    { ...TEST_AGENT, dialect: "morse" },
    { ...TEST_AGENT, variables: { "A B": "x" } },
  ]) {
    expect(await statusOf(admin, "PUT", `${AGENTS}/mine`, body)).toBe(400);
  }
  expect(await statusOf(admin, "PUT", `${AGENTS}/Not%20A%20Name`, TEST_AGENT)).toBe(400);
});

test("[CA-12] a chat begins with an agent that is enabled, in a workspace; without one its shape is as before", async () => {
  const begin = (more: object) =>
    person.fetch(
      "POST",
      "/api/v2/chats",
      Object.assign({ organization_id, content: [{ type: "text", text: "x" }] }, more),
    );
  expect((await begin({ coding_agent: "codex" })).status).toBe(400);
  await admin.put<unknown>(`${AGENTS}/mine`, TEST_AGENT);
  const refused = await begin({ coding_agent: "mine" });
  expect(refused.status).toBe(400);
  expect(await refused.text()).toContain("workspace_id");
  const plain = await begin({});
  expect(plain.status).toBe(201);
  expect(await plain.json()).not.toHaveProperty("coding_agent");
});
