// Audit log entries of rejected changes, and rejections without an entry, through the public client.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { uuid } from "#base/ids.ts";
import type { AuditLog } from "#schema/audit.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { Client } from "#src/client.ts";
import { awaitBuild, createWorkspace, openWorld, seedTemplate, type World } from "#test/support/workspaces.ts";
import { newPerson, PASSWORD, type Person } from "../users/people.ts";

let world: World;
let ann: Person;
let bob: Person;
let auditor: Person;
let template: string;
let organization_id: string;
let workspace: Workspace;

beforeAll(async () => {
  world = await openWorld();
  const { admin } = world;
  [ann, bob, auditor] = [
    await newPerson(admin, "ann"),
    await newPerson(admin, "bob"),
    await newPerson(admin, "audrey", ["auditor"]),
  ];
  ({ template_id: template, organization_id } = await seedTemplate(world.server));
  workspace = await createWorkspace(ann.client, template, "dev");
  await awaitBuild(ann.client, workspace.id);
});
afterAll(() => world[Symbol.asyncDispose]());

const searchEntries = async (q: string): Promise<AuditLog[]> =>
  (await auditor.client.get<{ audit_logs: AuditLog[] }>(`/api/v2/audit?limit=50&q=${encodeURIComponent(q)}`))
    .audit_logs;

/** Returns the response status, and the log's entries for the request. */
const requestWithEntries = async (
  client: Client,
  method: string,
  path: string,
  body?: unknown,
): Promise<[number, AuditLog[]]> => {
  const request_id = uuid();
  const headers = { "x-request-id": request_id };
  const response = await client.fetch(method, `/api/v2${path}`, body, { headers });
  await response.body?.cancel();
  return [response.status, await searchEntries(`request_id:${request_id}`)];
};

test("[AU-16] [AU-9] records that a member tried to change a template", async () => {
  const [status, entries] = await requestWithEntries(ann.client, "PATCH", `/templates/${template}`, {
    description: "mine",
  });
  expect(status).toBe(403);
  expect(entries).toMatchObject([
    {
      action: "write",
      resource_type: "template",
      resource_id: template,
      status_code: 403,
      diff: {},
      user: { username: "ann" },
      ip: "127.0.0.1",
      organization_id,
      is_deleted: false,
      additional_fields: {},
      description: "{user} unsuccessfully attempted to write template {target}",
    },
  ]);
  expect(entries[0]?.resource_link).toBe(`/templates/${entries[0]?.resource_target}`);
});

test("[AU-16] records other users' attempts to stop, share or open a workspace, which return 404", async () => {
  const path = `/workspaces/${workspace.id}`;
  const [status, [stopped]] = await requestWithEntries(bob.client, "POST", `${path}/builds`, { transition: "stop" });
  expect(status).toBe(404);
  expect(stopped).toMatchObject({
    action: "stop",
    resource_type: "workspace_build",
    resource_target: "dev",
    status_code: 404,
    diff: {},
    description: "{user} unsuccessfully attempted to stop workspace {target}",
    organization_id,
    resource_link: "/@ann/dev",
    user: { username: "bob" },
    additional_fields: { workspace_name: "dev", workspace_id: workspace.id, workspace_owner: "ann" },
  });
  const acl = { user_roles: { [bob.user.id]: "admin" } };
  const [, [shared]] = await requestWithEntries(bob.client, "PATCH", `${path}/acl`, acl);
  expect(shared).toMatchObject({ action: "write", resource_type: "workspace", resource_id: workspace.id });
  const port = { agent_name: "dev", port: 8080, protocol: "http", share_level: "public" };
  const [, [opened]] = await requestWithEntries(bob.client, "POST", `${path}/port-share`, port);
  expect(opened).toMatchObject({ action: "create", resource_type: "port_share", resource_target: "dev" });
});

test("[AU-16] records permitted changes that fail because of a conflict or a wrong password", async () => {
  const deadline = "2040-01-01T00:00:00Z";
  const [extendStatus, [extended]] = await requestWithEntries(ann.client, "PUT", `/workspaces/${workspace.id}/extend`, {
    deadline,
  });
  expect(extendStatus).toBe(409);
  expect(extended).toMatchObject({ action: "write", resource_type: "workspace", status_code: 409, diff: {} });
  const passwords = { old_password: "canary-guess-of-it", password: "canary-wanted-by-it" };
  const [passwordStatus, [passwordChange]] = await requestWithEntries(
    ann.client,
    "PUT",
    "/users/me/password",
    passwords,
  );
  expect(passwordStatus).toBe(400);
  expect(passwordChange).toMatchObject({
    action: "write",
    resource_type: "user",
    resource_target: "ann",
    status_code: 400,
  });
  const [, [confirmation]] = await requestWithEntries(ann.client, "POST", "/users/me/confirm", {
    password: "canary-again",
  });
  expect(confirmation).toMatchObject({
    action: "write",
    resource_type: "user",
    resource_target: "ann",
    status_code: 400,
  });
  expect(JSON.stringify([passwordChange, confirmation])).not.toContain("canary");
});

test("[AU-16] records the rejection of a key without the scope, even for its owner's resource", async () => {
  const scopedToken = { token_name: "narrow", scope: "application_connect" };
  const { key } = await ann.client.post<{ key: string }>("/api/v2/users/me/keys/tokens", scopedToken);
  const [status, entries] = await requestWithEntries(ann.client.withToken(key), "PUT", "/chats/config/user-prompt", {
    custom_prompt: "canary",
  });
  expect(status).toBe(403);
  const promptFields = {
    resource_type: "user_chat_settings",
    resource_target: "prompt",
    resource_id: ann.user.id,
    diff: {},
  };
  expect(entries).toMatchObject([{ ...promptFields, user: { username: "ann" }, status_code: 403 }]);
});

test("[AU-17] does not record missing resources, reads and creations", async () => {
  const workspacePath = `/workspaces/${workspace.id}`;
  const calls: [number, Client, string, string, unknown?][] = [
    [404, bob.client, "PUT", `/workspaces/${uuid()}/ttl`, { ttl_ms: null }],
    [404, bob.client, "DELETE", `${workspacePath}/port-share`, { agent_name: "dev", port: 9999 }],
    [400, bob.client, "PUT", "/workspaces/no-id-at-all-1/ttl", { ttl_ms: "soon" }],
    [404, bob.client, "GET", workspacePath],
    [405, bob.client, "PUT", workspacePath, {}],
    [403, bob.client, "POST", "/users", { email: "c@example.com", username: "c", password: PASSWORD }],
    [404, bob.client, "POST", "/users/ann/keys/tokens", { token_name: "hers" }],
    [401, bob.client.withToken(undefined), "PUT", `${workspacePath}/ttl`, { ttl_ms: null }],
  ];
  for (const [status, client, method, path, body] of calls)
    expect(await requestWithEntries(client, method, path, body)).toEqual([status, []]);
});

test("[AU-17] does not record attempts of a suspended account", async () => {
  const { client } = await newPerson(world.admin, "carl");
  await world.admin.put("/api/v2/users/carl/status/suspend");
  expect(await requestWithEntries(client, "PATCH", `/templates/${template}`, { description: "mine" })).toEqual([
    401,
    [],
  ]);
});

test("[AU-16] [AU-10] [AU-13] finds entries of rejections by search and in the export", async () => {
  const request_id = uuid();
  const headers = { "x-request-id": request_id };
  await bob.client.fetch("DELETE", "/api/v2/users/audrey", undefined, { headers });
  const [entry] = await searchEntries("username:bob action:delete resource_type:user resource_target:audrey");
  expect(entry).toMatchObject({
    request_id,
    status_code: 404,
    resource_id: auditor.user.id,
    resource_link: "/users?filter=audrey",
  });
  const file = await auditor.client.fetch("GET", `/api/v2/audit/export?q=request_id:${request_id}`);
  expect(JSON.parse(await file.text())).toEqual(entry);
});

test("[AU-16] records a rejected time to live, deadline or share of a person who may change the workspace", async () => {
  const ownTemplate = await seedTemplate(world.server, undefined, {
    allow_user_autostop: false,
    max_port_share_level: "owner",
  });
  const { id } = await createWorkspace(ann.client, ownTemplate.template_id, "bounded");
  await awaitBuild(ann.client, id);
  const port = { agent_name: "dev", port: 8080, protocol: "http" };
  const attempts: [number, string, string, object, string][] = [
    [400, "PUT", "ttl", { ttl_ms: 7_200_000 }, "workspace"],
    [400, "PUT", "ttl", { ttl_ms: 1 }, "workspace"],
    [409, "PUT", "extend", { deadline: "2100-01-01T00:00:00Z" }, "workspace"],
    [400, "PUT", "ttl", { ttl_ms: "soon" }, "workspace"],
    [400, "PUT", "ttl", { ttl_ms: 1, more: 1 }, "workspace"],
    [400, "PUT", "ttl", [], "workspace"],
    [400, "PUT", "extend", { deadline: 5 }, "workspace"],
    [400, "PUT", "extend", { deadline: "2100-01-01" }, "workspace"],
    [400, "PUT", "autostart", { schedule: 7 }, "workspace"],
    [400, "PATCH", "acl", { user_roles: "all" }, "workspace"],
    [400, "POST", "port-share", { ...port, share_level: "everybody" }, "port_share"],
    [400, "POST", "port-share", { ...port, port: "8080x", share_level: "owner" }, "port_share"],
    [400, "POST", "port-share", {}, "port_share"],
    [400, "PATCH", "acl", { user_roles: { [uuid()]: "use" } }, "workspace"],
    [400, "PATCH", "acl", { user_roles: { [workspace.owner_id]: "king" } }, "workspace"],
    [400, "POST", "port-share", { ...port, share_level: "public" }, "port_share"],
  ];
  for (const [expected, method, path, body, resource_type] of attempts) {
    const [status, entries] = await requestWithEntries(ann.client, method, `/workspaces/${id}/${path}`, body);
    const summaries = entries.map((entry) => [
      entry.status_code,
      entry.resource_type,
      entry.diff,
      entry.user?.username,
    ]);
    expect([method, path, status, summaries]).toEqual([method, path, expected, [[expected, resource_type, {}, "ann"]]]);
  }
});

test("[AU-9] an entry shows its user's organizations", async () => {
  const [, entries] = await requestWithEntries(ann.client, "PATCH", `/templates/${template}`, { description: "again" });
  expect(entries[0]?.user?.organization_ids).toEqual([organization_id]);
});
