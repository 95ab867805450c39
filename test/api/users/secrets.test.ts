// Users' secrets for their workspaces: managing them, the agents that get them, and places where they must never appear.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Static } from "@sinclair/typebox";
import { sha256, uuid } from "#base/ids.ts";
import { notifySecretsChanges } from "#domain/agents/secrets-change.ts";
import { loadKnownSecrets } from "#domain/chats/known-secrets.ts";
import type { AuditLogs } from "#schema/audit.ts";
import type { UserSecret } from "#schema/users/user-secret.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { Client } from "#src/client.ts";
import { SecretMask } from "#src/tools/mask.ts";
import { WireError } from "#src/wire/wire-error.ts";
import { connectAgent } from "#test/api/agents/rpc-agent.ts";
import { startDaemon } from "#test/daemon/support/daemon.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { getContext, seedUser } from "#test/support/seed.ts";
import { readStoredTexts } from "#test/support/stored.ts";
import { until } from "#test/support/until.ts";
import { awaitBuild, createWorkspace, ECHO, openWorld, seedTemplate, type World } from "#test/support/workspaces.ts";
import { fetchStatus } from "./people.ts";

const VALUE = "hunter2-of-the-registry";
let world: World;
let ada: Client;
let bob: Client;
let template_id: string;
const ids: Record<string, string> = {};

beforeAll(async () => {
  world = await openWorld();
  const seeded = await seedTemplate(world.server, ECHO);
  ({ template_id } = seeded);
  const { organization_id } = seeded;
  const createPerson = async (username: string): Promise<Client> => {
    const { token, user_id } = await seedUser(world.server, { username, organization_id });
    ids[username] = user_id;
    return world.admin.withToken(token);
  };
  ada = await createPerson("ada");
  bob = await createPerson("bob");
});
afterAll(() => world[Symbol.asyncDispose]());

const SECRETS = "/api/v2/users/me/secrets";
const createSecret = (client: Client, body: object): Promise<UserSecret> => client.post<UserSecret>(SECRETS, body);
const getCreateStatus = (client: Client, body: object): Promise<number> =>
  fetchStatus(client, "POST", "/users/me/secrets", body);

/** Returns the token of the agent of a new workspace of this person. */
const createAgentToken = async (client: Client, name: string, scope = "all"): Promise<string> => {
  const { id } = await createWorkspace(client, template_id, name);
  await awaitBuild(client, id);
  const token = uuid();
  const sql = "update agents set token_hash = ?1, api_key_scope = ?3 where workspace_id = ?2";
  await getContext(world.server).store.commit([{ sql, rows: [[sha256(token), id, scope]] }]);
  return token;
};

/** Returns the secrets that the agent of a new workspace gets, by variable and file. */
const getAgentSecrets = async (client: Client, name: string, scope = "all"): Promise<Record<string, string>> => {
  const token = await createAgentToken(client, name, scope);
  await using agent = await connectAgent(world.server, token);
  const { secrets } = await agent.agent.getManifest({});
  const decoder = new TextDecoder();
  return Object.fromEntries(
    secrets.map(({ envName, filePath, value }) => [`${envName}|${filePath}`, decoder.decode(value)]),
  );
};

test("[US-1] [US-3] each user has their own secrets; taken or invalid names, and too many secrets, are rejected", async () => {
  const created = await createSecret(ada, {
    name: "Registry",
    value: VALUE,
    env_name: "REGISTRY_TOKEN",
    description: "Images.",
  });
  expect(created).toMatchObject({
    name: "Registry",
    env_name: "REGISTRY_TOKEN",
    file_path: "",
    description: "Images.",
  });
  expect(await ada.get<UserSecret>(`${SECRETS}/registry`)).toEqual(created);
  expect(await ada.get<UserSecret[]>(SECRETS)).toEqual([created]);
  expect(await bob.get<UserSecret[]>(SECRETS)).toEqual([]);
  for (const [client, status] of [
    [bob, 404],
    [world.admin, 403],
  ] as const) {
    expect(await fetchStatus(client, "GET", "/users/ada/secrets")).toBe(status);
    expect(await fetchStatus(client, "DELETE", "/users/ada/secrets/Registry")).toBe(status);
  }
  expect(await getCreateStatus(ada, { name: "registry", value: "x" })).toBe(409);
  expect(await getCreateStatus(ada, { name: "other", value: "x", env_name: "REGISTRY_TOKEN" })).toBe(409);
  await createSecret(ada, { name: "file", value: "in a file", file_path: "~/.config/token" });
  expect(await getCreateStatus(ada, { name: "other", value: "x", file_path: "~/.config/token" })).toBe(409);
  for (const invalid of [
    ...[{ name: "a b" }, { name: "" }, { value: "" }, { value: "x".repeat(16_385) }, { value: "ä".repeat(8_193) }],
    ...[{ env_name: "1A" }, { env_name: "PATH" }, { env_name: "SLIPWAY_URL" }, { env_name: "CODER_AGENT_TOKEN" }],
    ...[{ file_path: "token" }, { file_path: "~/../token" }, { file_path: "/a//b" }, { file_path: "~/" }],
    ...[{ unknown: true }, { value: "with \u0000" }],
  ]) {
    expect([invalid, await getCreateStatus(ada, { name: "wrong", value: "x", ...invalid })]).toEqual([invalid, 400]);
  }
  expect((await ada.get<UserSecret[]>(SECRETS)).map(({ name }) => name)).toEqual(["file", "Registry"]);
  for (let n = 0; n < 50; n++) await createSecret(bob, { name: `n${n}`, value: "x" });
  expect(await getCreateStatus(bob, { name: "one-more", value: "x" })).toBe(409);
  for (let n = 0; n < 50; n++) expect(await fetchStatus(bob, "DELETE", `/users/me/secrets/n${n}`)).toBe(204);
});

test("[US-2] no response, audit log entry or file of the server contains a value", async () => {
  const changed = await ada.patch<UserSecret>(`${SECRETS}/registry`, {
    value: `${VALUE}-2`,
    description: "Of images.",
  });
  expect(changed).toMatchObject({ description: "Of images.", env_name: "REGISTRY_TOKEN" });
  expect(JSON.stringify(changed)).not.toContain(VALUE);
  const { audit_logs } = await world.admin.get<Static<typeof AuditLogs>>(
    "/api/v2/audit?q=resource_type:user_secret%20resource_target:Registry&limit=100",
  );
  const successEntries = audit_logs.filter(
    ({ resource_target, status_code }) => resource_target === "Registry" && status_code < 400,
  );
  expect(successEntries.map(({ action }) => action)).toEqual(["write", "create"]);
  expect(successEntries[0]?.diff).toMatchObject({
    value: { old: "", new: "", secret: true },
    description: { new: "Of images." },
  });
  const texts = await readStoredTexts(world.server.directory);
  expect(texts.some((text) => text.includes("REGISTRY_TOKEN"))).toBe(true);
  expect(texts.filter((text) => text.includes(VALUE))).toEqual([]);
});

test("[US-4] only agents of the user's own workspaces that may have user data get the secrets", async () => {
  expect(await getAgentSecrets(ada, "mine")).toEqual({
    "|~/.config/token": "in a file",
    "REGISTRY_TOKEN|": `${VALUE}-2`,
  });
  expect(await getAgentSecrets(ada, "bare", "no_user_data")).toEqual({});
  expect(await getAgentSecrets(bob, "his")).toEqual({});
});

test("[US-7] [DM-23] a running daemon receives changes to secrets within seconds, even before its tunnel is open", async () => {
  await using daemon = startDaemon({ url: world.server.url, token: await createAgentToken(ada, "running") });
  const toHomePath = (name: string): string => join(daemon.home, name);
  await until(() => existsSync(toHomePath(".config/token")));
  await createSecret(ada, { name: "late", value: "one", file_path: "~/late" });
  await until(() => existsSync(toHomePath("late")) && readFileSync(toHomePath("late"), "utf8") === "one", {
    timeoutMs: 5_000,
  });
  for (let n = 0; n <= 20; n += 1) await ada.patch(`${SECRETS}/late`, { value: `value ${n}` });
  await until(() => readFileSync(toHomePath("late"), "utf8") === "value 20", { timeoutMs: 5_000 });
  await Bun.write(toHomePath("late"), "mine");
  await createSecret(ada, { name: "later", value: "two", file_path: "~/later" });
  await until(() => existsSync(toHomePath("later")), { timeoutMs: 5_000 });
  // A file that a person has changed is not deleted.
  for (const name of ["late", "later"]) expect(await fetchStatus(ada, "DELETE", `/users/me/secrets/${name}`)).toBe(204);
  await until(() => !existsSync(toHomePath("later")), { timeoutMs: 5_000 });
  expect(readFileSync(toHomePath("late"), "utf8")).toBe("mine");
});

test("[US-7] notifies a silent daemon five times, one request at a time, until its connection ends", async () => {
  const { store, topics } = getContext(world.server);
  const clock = new ManualClock();
  const { latest_build } = await ada.get<Workspace>("/api/v2/users/me/workspace/mine");
  const agent_id = latest_build.resources[0]?.agents[0]?.id ?? "";
  const requests: AbortSignal[] = [];
  const agentHttp = {
    request: (_: string, { signal }: { signal?: AbortSignal }) => {
      if (signal) requests.push(signal);
      return new Promise<never>((_resolve, reject) =>
        signal?.addEventListener("abort", () => reject(new WireError("timeout", "It does not answer."))),
      );
    },
  };
  const connectionEnd = new AbortController();
  await notifySecretsChanges({ store, topics, clock, agentHttp: agentHttp as never }, agent_id, connectionEnd.signal);
  const publishChanges = (times: number): void => {
    for (let n = 0; n < times; n += 1) topics.publish("secrets_changed", ids.ada ?? "", {});
  };
  publishChanges(100);
  for (let attempt = 1; attempt <= 5; attempt += 1) {
    expect(requests.length).toBe(attempt);
    await clock.timerIn(10_000);
    clock.advance(10_000);
    expect(requests.at(-1)?.aborted).toBe(true);
    if (attempt === 5) break;
    await clock.timerIn(5_000);
    clock.advance(5_000);
    await until(() => requests.length > attempt);
  }
  // Changes in the meantime lead to one more notification.
  await until(() => requests.length === 6);
  publishChanges(100);
  connectionEnd.abort();
  await until(() => requests.at(-1)?.aborted);
  publishChanges(100);
  expect(requests.length).toBe(6);
});

test("[US-5] masks the owner's values in tool results", async () => {
  const knownSecrets = await loadKnownSecrets(getContext(world.server), {
    chat_id: "",
    owner_id: ids.ada ?? "",
    workspace_id: null,
  });
  const mask = new SecretMask(knownSecrets);
  expect(mask.text(`curl -H "Authorization: ${VALUE}-2"`)).toBe('curl -H "Authorization: [hidden]"');
  const shared = await createWorkspace(ada, template_id, "shared");
  const sharedSecrets = await loadKnownSecrets(getContext(world.server), {
    chat_id: "",
    owner_id: ids.bob ?? "",
    workspace_id: shared.id,
  });
  expect(new SecretMask(sharedSecrets).text(`${VALUE}-2`)).toBe("[hidden]");
});

test("[US-6] deleting a user deletes their secrets", async () => {
  await createSecret(bob, { name: "last", value: "of bob" });
  const { store } = getContext(world.server);
  const countSecrets = async (): Promise<number> => {
    const sql = "select count(*) from user_secrets where user_id = ?1";
    return Number(await store.get({ sql, params: [ids.bob ?? ""], map: ([n]) => n }));
  };
  expect(await countSecrets()).toBe(1);
  const { workspaces } = await bob.get<{ workspaces: { id: string }[] }>("/api/v2/workspaces?q=owner:me");
  for (const { id } of workspaces) {
    await bob.post(`/api/v2/workspaces/${id}/builds`, { transition: "delete" });
    await awaitBuild(bob, id);
  }
  expect(await fetchStatus(world.admin, "DELETE", "/users/bob")).toBe(200);
  expect(await countSecrets()).toBe(0);
});
