// Following and exporting the audit log, and the default permissions of chats.
import { expect, test } from "bun:test";
import type { AuditLog } from "#schema/audit.ts";
import type { Chat } from "#schema/chats/chat.ts";
import type { Client, ClientSocket } from "#src/client.ts";
import { addModel, openModelWorld } from "#test/support/models/model-world.ts";
import { until } from "#test/support/until.ts";
import { newPerson } from "../users/people.ts";

/** Returns the next list of entries, skipping pings. */
const nextEntries = async (socket: ClientSocket): Promise<AuditLog[]> => {
  for (;;) {
    const message = await socket.json<AuditLog[] | { type: "ping" }>();
    if (Array.isArray(message)) return message;
  }
};

test("[AD-10] sends new entries that match the filter; the CSV has every entry and no formula", async () => {
  await using world = await openModelWorld();
  const { owner } = world;
  const auditor = await newPerson(owner, "grace", ["auditor"]);
  const [newest] = (await auditor.client.get<{ audit_logs: AuditLog[] }>("/api/v2/audit?limit=1")).audit_logs;
  const q = encodeURIComponent("resource_type:organization");
  using socket = await auditor.client.socket(`/api/v2/audit/watch?q=${q}&after_id=${newest?.id}`);
  await owner.put("/api/v2/users/admin/profile", { username: "admin", name: "Ada" });
  await owner.post("/api/v2/organizations", { name: "harbour", description: "=1+1" });
  const received = await nextEntries(socket);
  expect(received).toMatchObject([{ action: "create", resource_target: "harbour" }]);
  await owner.delete("/api/v2/organizations/harbour");
  expect(await nextEntries(socket)).toMatchObject([{ action: "delete", resource_target: "harbour" }]);

  await owner.post("/api/v2/users", { username: "eve", name: "=cmd()", service_account: true, login_type: "none" });
  const exportResponse = await auditor.client.fetch("GET", "/api/v2/audit/export?format=csv");
  expect(exportResponse.headers.get("content-type")).toStartWith("text/csv");
  const rows = (await exportResponse.text()).trimEnd().split("\r\n");
  expect(rows[0]).toStartWith("time,user,action,resource_type,resource_target");
  const { count } = await auditor.client.get<{ count: number }>("/api/v2/audit?limit=1");
  expect(rows.length - 1).toBeGreaterThanOrEqual(count);
  expect(rows.some((row) => row.includes(",harbour,"))).toBe(true);
  expect((await auditor.client.fetch("GET", "/api/v2/audit/export?format=xls")).status).toBe(400);
  await owner.put(`/api/v2/users/${auditor.user.id}/roles`, { roles: [] });
  expect((await socket.closed).code).toBe(1008);
});

test("[AD-10] a follower of an empty audit log learns its starting point", async () => {
  await using world = await openModelWorld();
  const { owner } = world;
  const q = encodeURIComponent("resource_type:organization");
  using socket = await owner.socket(`/api/v2/audit/watch?q=${q}`);
  expect(await nextEntries(socket)).toEqual([]);
  await owner.post("/api/v2/organizations", { name: "harbour" });
  expect(await nextEntries(socket)).toMatchObject([{ action: "create", resource_target: "harbour" }]);
});

test("[AU-20] shows a chat's title and permissions only to people who may read it", async () => {
  await using world = await openModelWorld();
  const { owner, organization_id } = world;
  await addModel(world);
  const [ann, lea] = [await newPerson(owner, "ann"), await newPerson(owner, "lea", ["auditor"])];
  const role = { roles: ["organization-admin"] };
  await owner.put("/api/v2/organizations/default/members/lea/roles", role);
  using socket = await lea.client.socket("/api/v2/audit/watch?q=chat");
  expect(await nextEntries(socket)).toEqual([]);
  const chat = await ann.client.post<Chat>("/api/v2/chats", {
    organization_id,
    content: [{ type: "text", text: "My salary is 123456" }],
    labels: { case: "secret-label" },
  });
  const rule = { tool: "execute", command: "secret-command", action: "allow" as const };
  const permissions = { default: "ask" as const, rules: [rule] };
  await ann.client.put("/api/v2/chats/config/user-permissions", { permissions });
  const secrets = /salary|secret-label|secret-command/;
  const path = `/api/v2/audit?limit=20&q=resource_id:${chat.id}`;
  const findCreateEntry = async (client: Client) =>
    (await client.get<{ audit_logs: AuditLog[] }>(path)).audit_logs.find(({ action }) => action === "create");
  expect((await findCreateEntry(lea.client))?.diff).toMatchObject({
    title: { old: "", new: "", secret: true },
    labels: { old: {}, new: {}, secret: true },
    owner_id: { new: ann.user.id, secret: false },
  });
  expect(JSON.stringify(await nextEntries(socket))).not.toMatch(secrets);
  for (const format of ["ndjson", "csv"]) {
    const file = await lea.client.fetch("GET", `/api/v2/audit/export?format=${format}`);
    expect(await file.text()).not.toMatch(secrets);
  }
  const expectedDiff = { title: { new: "My salary is 123456" }, labels: { new: { case: "secret-label" } } };
  expect((await findCreateEntry(owner))?.diff).toMatchObject(expectedDiff);
  // A token that may not read chats reads none of it.
  const { key } = await owner.post<{ key: string }>("/api/v2/users/me/keys/tokens", { scopes: ["audit_log:read"] });
  expect(JSON.stringify(await findCreateEntry(owner.withToken(key)))).not.toMatch(secrets);
  await ann.client.patch(`/api/v2/chats/${chat.id}/acl`, { user_roles: { [lea.user.id]: "read" } });
  expect((await findCreateEntry(lea.client))?.diff).toMatchObject(expectedDiff);
  await ann.client.post<unknown>(`/api/v2/chats/${chat.id}/interrupt`, {});
  await until(async () => (await ann.client.get<Chat>(`/api/v2/chats/${chat.id}`)).status === "waiting");
  await ann.client.delete(`/api/v2/chats/${chat.id}`);
  for (const client of [owner, lea.client]) expect(JSON.stringify(await findCreateEntry(client))).not.toMatch(secrets);
});

test("[AU-21] logs the permission mode of a chat for everyone who reads the log, also once the chat is deleted, and its rules for its readers", async () => {
  await using world = await openModelWorld();
  const { owner, organization_id } = world;
  await addModel(world);
  const [ann, lea] = [await newPerson(owner, "ann"), await newPerson(owner, "lea", ["auditor"])];
  const chat = await ann.client.post<Chat>("/api/v2/chats", {
    organization_id,
    content: [{ type: "text", text: "hello" }],
    permission_mode: "ask",
  });
  await ann.client.post<unknown>(`/api/v2/chats/${chat.id}/interrupt`, {});
  await until(async () => (await ann.client.get<Chat>(`/api/v2/chats/${chat.id}`)).status === "waiting");
  const path = `/api/v2/chats/${chat.id}` as const;
  const rules = [{ tool: "execute", command: "ls", action: "allow" as const }];
  await ann.client.patch(path, { permission_mode: "allow" });
  await ann.client.patch(path, { permissions: { default: "allow", rules } });
  await ann.client.patch(path, { permission_mode: "plan" });
  const readChanges = async (client: Client): Promise<unknown[][]> =>
    (await client.get<{ audit_logs: AuditLog[] }>(`/api/v2/audit?limit=20&q=resource_id:${chat.id}`)).audit_logs
      .toReversed()
      .filter(({ diff }) => diff.permission_mode || diff.permissions)
      .map(({ action, diff }) => [action, diff.permission_mode, diff.permissions]);
  const toMode = (old: string, mode: string) => ({ old, new: mode, secret: false });
  const hidden = { old: {}, new: {}, secret: true };
  const shown = (old: object, is: object) => ({ old, new: is, secret: false });
  const asking = { default: "ask_changes", rules: [] };
  expect(await readChanges(owner)).toEqual([
    ["create", toMode("", "ask"), shown({}, asking)],
    ["write", toMode("ask", "allow"), shown(asking, { default: "allow", rules: [] })],
    ["write", undefined, shown({ default: "allow", rules: [] }, { default: "allow", rules })],
    ["write", toMode("allow", "plan"), undefined],
  ]);
  const redacted = [
    ["create", toMode("", "ask"), hidden],
    ["write", toMode("ask", "allow"), hidden],
    ["write", undefined, hidden],
    ["write", toMode("allow", "plan"), undefined],
  ];
  expect(await readChanges(lea.client)).toEqual(redacted);
  await ann.client.delete(path);
  const deleted = ["delete", toMode("plan", ""), hidden];
  for (const client of [owner, lea.client]) expect(await readChanges(client)).toEqual([...redacted, deleted]);

  await ann.client.put("/api/v2/chats/config/user-permissions", { permissions: { default: "allow", rules } });
  const q = encodeURIComponent(`resource_id:${ann.user.id} resource_type:user_chat_settings`);
  const [own] = (await lea.client.get<{ audit_logs: AuditLog[] }>(`/api/v2/audit?limit=1&q=${q}`)).audit_logs;
  expect(own?.diff).toEqual({ permission_mode: toMode("", "allow"), permissions: hidden });
});

test("[AD-9] chats of people without permissions of their own start with the deployment's", async () => {
  await using world = await openModelWorld();
  const { owner, organization_id } = world;
  await addModel(world);
  const permissions = { default: "ask" as const, rules: [{ tool: "read_file", action: "allow" as const }] };
  await owner.put("/api/v2/chats/config/default-permissions", { permissions });
  expect(await owner.get("/api/v2/chats/config/default-permissions")).toEqual({ permissions });
  const createChat = () =>
    owner.post<Chat>("/api/v2/chats", { organization_id, content: [{ type: "text", text: "hello" }] });
  expect((await createChat()).permissions).toEqual(permissions);
  const ownPermissions = { default: "deny" as const, rules: [] };
  await owner.put("/api/v2/chats/config/user-permissions", { permissions: ownPermissions });
  expect((await createChat()).permissions).toEqual(ownPermissions);
  const invalidBody = { permissions: { default: "ask", rules: [{ tool: "execut", action: "deny" }] } };
  expect((await owner.fetch("PUT", "/api/v2/chats/config/default-permissions", invalidBody)).status).toBe(400);
});
