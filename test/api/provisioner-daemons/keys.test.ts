// Provisioner keys: creating, listing and deleting them, access to them, and their use by workers.
import { afterAll, expect, test } from "bun:test";
import { isUuid } from "#base/ids.ts";
import { updateUser } from "#db/users/users.ts";
import type { AuditLog } from "#schema/audit.ts";
import type { NewProvisionerKey, ProvisionerKey, ProvisionerKeyDaemons } from "#schema/templates/provisioner.ts";
import { Client } from "#src/client.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { readStoredTexts } from "#test/support/stored.ts";
import { makeKey, openWorker } from "#test/support/worker.ts";
import { openWorld } from "#test/support/workspaces.ts";
import { newPerson } from "../users/people.ts";

const KEYS = "/api/v2/organizations/default/provisionerkeys";
const SERVE = "/api/v2/organizations/default/provisionerdaemons/serve?name=x";

const MEMBERS = "/api/v2/organizations/default/members";

const world = await openWorld();
const { admin, server } = world;
afterAll(() => world[Symbol.asyncDispose]());

const fetchStatus = async (client: Client, method: string, path: string, body?: unknown): Promise<number> =>
  (await client.fetch(method, path, body)).status;

test("[PV-13] returns a key once and stores only its hash; its name is unique, ignoring case", async () => {
  const created = await admin.post<NewProvisionerKey>(KEYS, { name: "Builders", tags: { region: "eu" } });
  const { id } = created;
  const [prefix = "", secret = ""] = created.key.split("-");
  expect(isUuid(id)).toBe(true);
  expect(secret).toHaveLength(43);
  const listed = (await admin.get<ProvisionerKey[]>(KEYS)).find(({ name }) => name === "Builders");
  expect(listed).toMatchObject({ id, tags: { region: "eu" } });
  expect(Object.keys(listed ?? {}).sort()).toEqual([
    ...["created_at", "created_by", "created_by_name", "id", "name", "organization_id", "tags"],
  ]);
  const storedTexts = (await readStoredTexts(server.directory)).join("");
  expect(storedTexts).toContain(prefix);
  expect(storedTexts).not.toContain(secret);
  expect(await fetchStatus(admin, "POST", KEYS, { name: "builders" })).toBe(409);
  expect(await fetchStatus(admin, "POST", KEYS, { name: "-no-" })).toBe(400);
});

test("[PV-13] only admins of the organization can manage keys; all members see the workers", async () => {
  const { client: member } = await newPerson(admin, "member");
  const { client: foreigner, user } = await newPerson(admin, "foreigner");
  await admin.delete(`/api/v2/organizations/default/members/${user.id}`);
  const anonymous = new Client(server.url);
  for (const [client, keyStatus, daemonStatus] of [
    [member, 403, 200],
    [foreigner, 404, 404],
    [anonymous, 401, 401],
  ] as const) {
    expect(await fetchStatus(client, "GET", KEYS)).toBe(keyStatus);
    expect(await fetchStatus(client, "POST", KEYS, { name: "mine" })).toBe(keyStatus);
    expect(await fetchStatus(client, "DELETE", `${KEYS}/Builders`)).toBe(keyStatus);
    expect(await fetchStatus(client, "GET", "/api/v2/organizations/default/provisionerdaemons")).toBe(daemonStatus);
  }
});

test("[PV-13] returns a key by its name, and keys with the workers that use them", async () => {
  const [used, unused] = [await makeKey(admin, { region: "eu" }), await makeKey(admin)];
  const { socket } = await openWorker(server.url, used.key, { name: "of-a-key" });
  expect(await admin.get<ProvisionerKey>(`${KEYS}/${used.name.toUpperCase()}`)).toMatchObject({
    id: used.id,
    tags: { region: "eu" },
  });
  expect(await fetchStatus(admin, "GET", `${KEYS}/no-such-key`)).toBe(404);
  const keyDaemons = await admin.get<ProvisionerKeyDaemons[]>(`${KEYS}/daemons`);
  const listDaemons = (id: string) =>
    keyDaemons.find(({ key }) => key.id === id)?.daemons.map(({ name, status }) => [name, status]);
  expect([listDaemons(used.id), listDaemons(unused.id)]).toEqual([[["of-a-key", "idle"]], []]);
  expect(JSON.stringify(keyDaemons)).not.toContain(used.key.split("-")[1] as string);
  socket.close();
});

test("[PV-13] a worker can connect only with a key of the organization and valid parameters", async () => {
  const { key } = await makeKey(admin);
  const worker = new Client(server.url, key);
  const invalidTokens = [
    undefined,
    admin.token,
    "words",
    `${key}x`,
    `aaaaaaaaaa-${key.slice(11)}`,
    `${key.slice(0, -1)}_`,
  ];
  for (const token of invalidTokens) expect(await fetchStatus(new Client(server.url, token), "GET", SERVE)).toBe(401);
  expect(await fetchStatus(worker, "GET", SERVE)).toBe(400);
  expect(await fetchStatus(worker, "GET", SERVE.replace("?name=x", ""))).toBe(400);
  expect(await fetchStatus(worker, "GET", `${SERVE}&provisioners=terraform`)).toBe(400);
  expect(await fetchStatus(worker, "GET", `${SERVE}&tags=region`)).toBe(400);
  expect(await fetchStatus(worker, "GET", `${SERVE}&slots=0`)).toBe(400);
  expect(await fetchStatus(worker, "GET", SERVE.replace("default", "nowhere"))).toBe(404);
  const { id: otherOrganization } = await admin.post<{ id: string }>("/api/v2/organizations", { name: "other" });
  expect(await fetchStatus(worker, "GET", SERVE.replace("default", otherOrganization))).toBe(401);
  // A provisioner key gives no access to the rest of the API.
  expect(await fetchStatus(worker, "GET", "/api/v2/users/me")).toBe(401);
});

test("[PV-13] a deleted key gives no access, and its workers are disconnected", async () => {
  const { key, name } = await makeKey(admin);
  const { socket } = await openWorker(server.url, key, { name: "short-lived" });
  expect(await fetchStatus(admin, "DELETE", `${KEYS}/${name}`)).toBe(204);
  expect(await socket.closed).toMatchObject({ code: 1008, reason: "the provisioner key was removed" });
  expect(await fetchStatus(new Client(server.url, key), "GET", SERVE)).toBe(401);
  expect(await fetchStatus(admin, "DELETE", `${KEYS}/${name}`)).toBe(404);
});

test("[PV-13] the keys of a deleted organization give no access, and its workers are disconnected", async () => {
  await admin.post("/api/v2/organizations", { name: "closing" });
  const organization = "/api/v2/organizations/closing";
  const { key } = await admin.post<NewProvisionerKey>(`${organization}/provisionerkeys`, { name: "builders" });
  const worker = new Client(server.url, key);
  using socket = await worker.socket(`${organization}/provisionerdaemons/serve?name=last`);
  expect(await fetchStatus(admin, "DELETE", organization)).toBe(200);
  expect(await socket.closed).toMatchObject({ code: 1008, reason: "the provisioner key was removed" });
  expect(await fetchStatus(worker, "GET", SERVE)).toBe(401);
});

/** Creates an administrator of the default organization, with a key and a worker that uses it. */
const createKeyOwner = async (username: string) => {
  const { client, user } = await newPerson(admin, username);
  await admin.put(`${MEMBERS}/${user.id}/roles`, { roles: ["organization-admin"] });
  const createdKey = await makeKey(client);
  const { socket } = await openWorker(server.url, createdKey.key, { name: `worker-of-${username}` });
  return { ...createdKey, user, socket };
};

const LOSSES: Readonly<Record<string, (user_id: string) => Promise<unknown>>> = {
  demoted: (id) => admin.put(`${MEMBERS}/${id}/roles`, { roles: ["organization-auditor"] }),
  removed: (id) => admin.delete(`${MEMBERS}/${id}`),
  suspended: (id) => admin.put(`/api/v2/users/${id}/status/suspend`),
  deleted: (id) => admin.delete(`/api/v2/users/${id}`),
};

for (const [loss, takeAccess] of Object.entries(LOSSES)) {
  test(`[PV-19] the key of an administrator who is ${loss} is deleted, and its worker disconnected`, async () => {
    const { id, key, name, user, socket } = await createKeyOwner(`admin-${loss}`);
    expect(await admin.get<ProvisionerKey>(`${KEYS}/${name}`)).toMatchObject({
      created_by: user.id,
      created_by_name: `admin-${loss}`,
    });
    await takeAccess(user.id);
    expect(await socket.closed).toMatchObject({ code: 1008, reason: "the provisioner key was removed" });
    expect(await fetchStatus(new Client(server.url, key), "GET", SERVE)).toBe(401);
    expect(await fetchStatus(admin, "GET", `${KEYS}/${name}`)).toBe(404);
    const { audit_logs } = await admin.get<{ audit_logs: AuditLog[] }>(
      "/api/v2/audit?limit=5&q=resource_type:provisioner_key",
    );
    expect(audit_logs).toContainEqual(expect.objectContaining({ resource_id: id, action: "delete" }));
  });
}

test("[PV-19] a former owner keeps the keys of organizations that they still administer", async () => {
  const { client, user } = await newPerson(admin, "second-owner", ["owner"]);
  await admin.post("/api/v2/organizations", { name: "elsewhere" });
  const otherKeys = "/api/v2/organizations/elsewhere/provisionerkeys";
  const keptKey = await makeKey(client);
  const deletedKey = await client.post<NewProvisionerKey>(otherKeys, { name: "builders" });
  await admin.put(`${MEMBERS}/${user.id}/roles`, { roles: ["organization-admin"] });
  await admin.put(`/api/v2/users/${user.id}/roles`, { roles: [] });
  expect(await fetchStatus(admin, "GET", `${otherKeys}/${deletedKey.name}`)).toBe(404);
  const { socket } = await openWorker(server.url, keptKey.key, { name: "still-building" });
  await admin.delete(`${MEMBERS}/${user.id}`);
  expect(await socket.closed).toMatchObject({ code: 1008 });
});

testInProcess("[PV-19] rejects a key whose creator lost access while the server was stopping", async () => {
  const { client, user } = await newPerson(admin, "lost-while-ending");
  await admin.put(`${MEMBERS}/${user.id}/roles`, { roles: ["organization-admin"] });
  const { key, name } = await makeKey(client);
  // A server that stops before it deletes the keys leaves this state.
  await server.context?.store.commit([updateUser(user.id, { status: "suspended", updated_at: Date.now() })]);
  expect(await fetchStatus(new Client(server.url, key), "GET", SERVE)).toBe(401);
  expect(await fetchStatus(admin, "GET", `${KEYS}/${name}`)).toBe(200);
});
