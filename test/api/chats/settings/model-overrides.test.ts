// Models that users choose for their own chats: when they apply, and who can choose.
import { expect, test } from "bun:test";
import { Client } from "#src/client.ts";
import { DEMO } from "#src/llm/demo.ts";
import { type ChatWorld, createChat, openChatWorld } from "#test/support/chats.ts";
import { SCRIPTED } from "#test/support/models/scripted-models.ts";
import { seedUser } from "#test/support/seed.ts";
import { ADMIN } from "#test/support/server.ts";

const toOverridesPath = (organization: string, user = "me"): string =>
  `/api/v2/organizations/${organization}/members/${user}/chats/model-overrides`;
const setOverridesAllowed = async (world: ChatWorld, allow_users: boolean) => {
  const admin = await new Client(world.server.url).signIn(ADMIN.email, ADMIN.password);
  await admin.put("/api/v2/chats/config/personal-model-overrides", { allow_users });
  return admin;
};

test("[MW-1] a new chat uses its owner's choice while that is allowed, unless the request names a model or effort", async () => {
  await using world = await openChatWorld();
  await setOverridesAllowed(world, true);
  const path = toOverridesPath(world.organization_id);
  expect(await world.owner.get(path)).toEqual({
    overrides: [
      { context: "root", mode: "chat_default" },
      { context: "general", mode: "deployment_default" },
      { context: "explore", mode: "deployment_default" },
    ],
  });
  const choice = { mode: "model", model_config_id: SCRIPTED.id, reasoning_effort: "high" };
  await world.owner.put(`${path}/root`, choice);
  await world.owner.put(`${path}/explore`, { mode: "chat_default", model_config_id: SCRIPTED.id });
  expect(await world.owner.get(path)).toEqual({
    overrides: [
      { context: "root", ...choice },
      { context: "general", mode: "deployment_default" },
      { context: "explore", mode: "chat_default" },
    ],
  });
  const createAndGetEffort = async (fields = {}) => (await createChat(world, "x", fields)).last_reasoning_effort;
  expect(await createAndGetEffort()).toBe("high");
  expect(await createAndGetEffort({ reasoning_effort: "low" })).toBe("low");
  expect(await createAndGetEffort({ model_config_id: SCRIPTED.id })).toBeUndefined();
  await setOverridesAllowed(world, false);
  expect(await createAndGetEffort()).toBeUndefined();
});

test("[MW-2] users choose only their own models, if allowed; an invalid choice is refused and changes nothing", async () => {
  await using world = await openChatWorld();
  const path = toOverridesPath(world.organization_id);
  const fetchStatus = async (client: Client, method: string, path: string, body?: unknown) =>
    (await client.fetch(method, path, body)).status;
  expect(await fetchStatus(world.owner, "GET", path)).toBe(403);
  expect(await fetchStatus(world.owner, "PUT", `${path}/root`, { mode: "chat_default" })).toBe(403);
  const admin = await setOverridesAllowed(world, true);
  const overridesBefore = await world.owner.get(path);
  for (const [context, body] of [
    ["root", { mode: "deployment_default" }],
    ["root", { mode: "model" }],
    ["general", { mode: "model", model_config_id: DEMO.id }],
    ["general", { mode: "model", model_config_id: SCRIPTED.id, reasoning_effort: "much" }],
    ["general", { mode: "other" }],
    ["title", { mode: "chat_default" }],
  ] as const) {
    expect([context, body, await fetchStatus(world.owner, "PUT", `${path}/${context}`, body)]).toEqual([
      context,
      body,
      400,
    ]);
  }
  expect(await world.owner.get(path)).toEqual(overridesBefore);
  const { token, organization_id: otherOrganization } = await seedUser(world.server);
  const outsider = new Client(world.server.url, token);
  expect(await fetchStatus(outsider, "GET", path)).toBe(404);
  expect(await fetchStatus(world.owner, "GET", toOverridesPath(otherOrganization))).toBe(404);
  expect(await fetchStatus(admin, "GET", toOverridesPath(world.organization_id, world.user_id))).toBe(403);
});
