// Chat settings of administrators and users, and the settings that reach the model.
import { expect, test } from "bun:test";
import { Client } from "#src/client.ts";
import { type ChatWorld, createChat, Follower, openChatWorld, sendMessage } from "#test/support/chats.ts";
import { serverForFile } from "#test/support/for-file.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { seedUser } from "#test/support/seed.ts";
import { ADMIN, startTestServer } from "#test/support/server.ts";

const CONFIG = "/api/v2/chats/config";

const { server, admin } = await serverForFile();
const member = new Client(server.url, (await seedUser(server)).token);

const fetchStatus = async (client: Client, method: string, path: string, body?: unknown): Promise<number> =>
  (await client.fetch(method, `${CONFIG}/${path}`, body)).status;

test.each<[path: string, field: string, initial: unknown, valid: unknown[], invalid: unknown[], isReadable: boolean]>([
  ["auto-archive-days", "auto_archive_days", 0, [1, 3650, 0], [-1, 3651, 1.5, "1"], true],
  ["debug-retention-days", "debug_retention_days", 30, [0, 3650], [-1, 3651], false],
  ["retention-days", "retention_days", 30, [0, 3650], [-1, 3651], true],
  ["workspace-ttl", "workspace_ttl_ms", 0, [60_000, 2_592_000_000, 0], [-1, 59_999, 2_592_000_001], true],
  ["personal-model-overrides", "allow_users", false, [true, false], ["true", 1], false],
  ["plan-mode-instructions", "plan_mode_instructions", "", ["Plan well."], [7, "x".repeat(131_073)], false],
])(
  "[CC-1] [CC-2] %s has a default, enforces its bounds, and checks who can read and write it",
  async (path, field, initial, valid, invalid, isReadable) => {
    const readValue = async () => (await admin.get<Record<string, unknown>>(`${CONFIG}/${path}`))[field];
    expect(await readValue()).toEqual(initial);
    for (const value of valid) {
      expect(await fetchStatus(admin, "PUT", path, { [field]: value })).toBe(204);
      expect(await readValue()).toEqual(value);
    }
    for (const value of invalid) expect(await fetchStatus(admin, "PUT", path, { [field]: value })).toBe(400);
    expect(await fetchStatus(admin, "PUT", path, {})).toBe(400);
    expect(await fetchStatus(member, "PUT", path, { [field]: valid[0] })).toBe(403);
    expect(await fetchStatus(member, "GET", path)).toBe(isReadable ? 200 : 404);
    expect(await readValue()).toEqual(valid.at(-1));
  },
);

test("[CC-3] the first custom system prompt replaces Slipway's own, unless both are requested", async () => {
  const readPrompt = () => admin.get<Record<string, unknown>>(`${CONFIG}/system-prompt`);
  const initial = await readPrompt();
  expect(initial).toMatchObject({ system_prompt: "", include_default_system_prompt: true });
  expect(initial.default_system_prompt).toContain("Slipway");
  await admin.put(`${CONFIG}/system-prompt`, { system_prompt: "Be\u200b brief.\u202e " });
  expect(await readPrompt()).toMatchObject({ system_prompt: "Be brief.", include_default_system_prompt: false });
  await admin.put(`${CONFIG}/system-prompt`, { system_prompt: "Be brief.", include_default_system_prompt: true });
  await admin.put(`${CONFIG}/system-prompt`, { system_prompt: "Be very brief." });
  expect(await readPrompt()).toMatchObject({ system_prompt: "Be very brief.", include_default_system_prompt: true });
  expect(await fetchStatus(admin, "PUT", "system-prompt", { system_prompt: "é".repeat(65_537) })).toBe(400);
  expect(await fetchStatus(admin, "PUT", "system-prompt", { system_prompt: "x".repeat(262_144) })).toBe(413);
  expect(await fetchStatus(member, "GET", "system-prompt")).toBe(404);
  expect(await fetchStatus(member, "PUT", "system-prompt", { system_prompt: "mine" })).toBe(403);
});

test("[CC-4] a user's prompt is private and returned as stored", async () => {
  const storedPrompt = await member.put<{ custom_prompt: string }>(`${CONFIG}/user-prompt`, {
    custom_prompt: "\ufeff Answer\r\nin\u00ad rhymes.\u0007 ",
  });
  expect(storedPrompt).toEqual({ custom_prompt: "Answer\nin rhymes." });
  expect(await member.get(`${CONFIG}/user-prompt`)).toEqual(storedPrompt);
  expect(await admin.get(`${CONFIG}/user-prompt`)).toEqual({ custom_prompt: "" });
  expect(await fetchStatus(member, "PUT", "user-prompt", { custom_prompt: "x".repeat(131_073) })).toBe(400);
  expect(await member.get(`${CONFIG}/user-prompt`)).toEqual(storedPrompt);
});

test("[CC-5] a user can record their model calls only after an administrator allows it", async () => {
  const readSetting = () => member.get(`${CONFIG}/user-debug-logging`);
  expect(await readSetting()).toEqual({
    debug_logging_enabled: false,
    user_toggle_allowed: false,
    forced_by_deployment: false,
  });
  expect(await fetchStatus(member, "PUT", "user-debug-logging", { debug_logging_enabled: true })).toBe(403);
  expect(await fetchStatus(member, "PUT", "debug-logging", { allow_users: true })).toBe(403);
  await admin.put(`${CONFIG}/debug-logging`, { allow_users: true });
  await member.put(`${CONFIG}/user-debug-logging`, { debug_logging_enabled: true });
  expect(await readSetting()).toMatchObject({ debug_logging_enabled: true, user_toggle_allowed: true });
  await admin.put(`${CONFIG}/debug-logging`, { allow_users: false });
  expect(await readSetting()).toMatchObject({ debug_logging_enabled: false, user_toggle_allowed: false });
});

test("[CC-5] a server that records all model calls rejects changes with 409", async () => {
  await using recordingServer = await startTestServer({ env: { SLIPWAY_CHAT_DEBUG_LOGGING: "true" } });
  const owner = await new Client(recordingServer.url).signIn(ADMIN.email, ADMIN.password);
  expect(await owner.get(`${CONFIG}/debug-logging`)).toEqual({
    allow_users: false,
    forced_by_deployment: true,
  });
  expect(await owner.get(`${CONFIG}/user-debug-logging`)).toEqual({
    debug_logging_enabled: true,
    user_toggle_allowed: false,
    forced_by_deployment: true,
  });
  expect(await fetchStatus(owner, "PUT", "debug-logging", { allow_users: true })).toBe(409);
  expect(await fetchStatus(owner, "PUT", "user-debug-logging", { debug_logging_enabled: false })).toBe(409);
});

test("[CC-6] stores compaction thresholds per model, even when two are set concurrently", async () => {
  const [first, second] = await createModels();
  const toPath = (id: string) => `user-compaction-thresholds/${id}`;
  const updates = [
    fetchStatus(member, "PUT", toPath(first), { threshold_percent: 70 }),
    fetchStatus(member, "PUT", toPath(second), { threshold_percent: 100 }),
  ];
  expect(await Promise.all(updates)).toEqual([204, 204]);
  const readThresholds = () => member.get<{ thresholds: unknown[] }>(`${CONFIG}/user-compaction-thresholds`);
  expect((await readThresholds()).thresholds).toHaveLength(2);
  expect((await readThresholds()).thresholds).toContainEqual({ model_config_id: first, threshold_percent: 70 });
  expect(await fetchStatus(member, "PUT", toPath(first), { threshold_percent: 101 })).toBe(400);
  expect(await fetchStatus(member, "PUT", toPath(crypto.randomUUID()), { threshold_percent: 1 })).toBe(404);
  expect(await fetchStatus(member, "DELETE", toPath(first))).toBe(204);
  expect(await readThresholds()).toEqual({ thresholds: [{ model_config_id: second, threshold_percent: 100 }] });
  expect(await admin.get(`${CONFIG}/user-compaction-thresholds`)).toEqual({ thresholds: [] });
});

/** Creates two models of a provider that is never called, and returns their IDs. */
const createModels = async (): Promise<[string, string]> => {
  const provider = await admin.post<{ id: string }>("/api/v2/chats/providers", {
    provider: "openai-compat",
    display_name: "Unused",
    base_url: "http://127.0.0.1:9/v1",
    api_key: "k",
    enabled: true,
  });
  const createModel = async (model: string): Promise<string> => {
    const created = await admin.post<{ id: string }>("/api/v2/chats/model-configs", {
      provider_id: provider.id,
      model,
      display_name: model,
      enabled: true,
      context_limit: 1000,
    });
    return created.id;
  };
  return [await createModel("one"), await createModel("two")];
};

testInProcess("[CC-7] a model gets the current prompts of the deployment, the owner and the mode", async () => {
  await using world = await openChatWorld();
  const deploymentOwner = await new Client(world.server.url).signIn(ADMIN.email, ADMIN.password);
  /** Performs an action that calls the model, and returns the system prompt of the call. */
  const readSystemPrompt = async (action: () => Promise<unknown>): Promise<string> => {
    await action();
    const call = await world.models.next();
    call.say("ok");
    call.finish();
    const [system] = call.request.messages;
    return system?.role === "system" ? system.content.map(({ text }) => text ?? "").join("") : "";
  };
  const chat = { id: "" };
  const firstPrompt = await readSystemPrompt(async () => Object.assign(chat, await createChat(world)));
  expect(firstPrompt).toContain("Slipway");
  expect(firstPrompt).toContain("not bound to a workspace");
  await waitForTurnEnd(world, chat.id);
  await deploymentOwner.put(`${CONFIG}/system-prompt`, { system_prompt: "House rule: be kind." });
  await deploymentOwner.put(`${CONFIG}/plan-mode-instructions`, { plan_mode_instructions: "Plans have three steps." });
  await world.owner.put(`${CONFIG}/user-prompt`, { custom_prompt: "Speak Welsh." });
  const secondPrompt = await readSystemPrompt(() => sendMessage(world, chat.id, "again"));
  expect(secondPrompt).toStartWith("House rule: be kind.");
  expect(secondPrompt).toContain("Speak Welsh.");
  expect(secondPrompt).not.toContain("three steps");
  await waitForTurnEnd(world, chat.id);
  await world.owner.patch(`/api/v2/chats/${chat.id}`, { plan_mode: "plan" });
  expect(await readSystemPrompt(() => sendMessage(world, chat.id, "plan"))).toEndWith("Plans have three steps.");
});

const waitForTurnEnd = async (world: ChatWorld, id: string): Promise<void> => {
  using follower = await Follower.open(world.owner, id);
  await follower.until(({ status }) => status === "waiting");
};
