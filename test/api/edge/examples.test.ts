// Example bodies of the OpenAPI document: every body has one, and those of the specification work unchanged.
import { beforeAll, expect, test } from "bun:test";
import type { Chat } from "#schema/chats/chat.ts";
import type { Manifest } from "#schema/templates/manifest.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { ANY_ID, ANY_TIME, loadIds, withIds } from "#src/api/http/document/example-ids.ts";
import { Client } from "#src/client.ts";
import { type Document, fetchDocument, listOperations } from "#test/fuzz/operations.ts";
import { createChat, openChatWorld } from "#test/support/chats.ts";
import { forFile } from "#test/support/for-file.ts";
import { seedAgent } from "#test/support/seed.ts";
import { ADMIN } from "#test/support/server.ts";
import { ECHO, followImport, uploadFiles } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";
import { awaitBuild, awaitWorkspace, seedTemplate } from "#test/support/workspaces.ts";

/** The smallest template with the agent that the examples name. */
const WITH_AGENT: Manifest = {
  provisioner: "echo",
  resources: [{ name: "main", agents: [{ name: "main", os: "linux", arch: "amd64" }] }],
};

/** The result of the client's `fetch`. */
type FetchResponse = Awaited<ReturnType<Client["fetch"]>>;

const world = await forFile(openChatWorld({ env: { SLIPWAY_ALLOW_WORKSPACE_RENAMES: "true" } }));
const { server } = world;
let admin: Client;
let document: Document;
beforeAll(async () => {
  admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  await seedTemplate(server, WITH_AGENT, { name: "fine" });
  document = await fetchDocument(server.url);
});

/** Sends an example as the API page fills it in for this caller. `path` has the path parameters, `more` has IDs from earlier responses. */
const send = async (
  client: Client,
  operation: string,
  path: Record<string, string> = {},
  earlierIds: Record<string, string> = {},
): Promise<FetchResponse> => {
  const [method = "", route = ""] = operation.split(" ");
  const ids = await loadIds((requested) => client.get(requested).catch(() => undefined), Date.now());
  const filled = withIds(structuredClone(document) as never, Object.assign(ids, earlierIds), [ANY_ID, ANY_TIME]);
  const [template = "", query = ""] = route.split("?");
  const described = filled.paths[`/api/v2${template}`]?.[method.toLowerCase()];
  const example = described?.requestBody?.content?.["application/json"]?.example;
  if (example === undefined) throw new Error(`${operation} has no example`);
  const filledPath = template.replace(/\{(\w+)\}/g, (_, name: string) => path[name] ?? "me");
  return await client.fetch(method, `/api/v2${filledPath}${query && `?${query}`}`, example);
};

/** Returns a non-success response with its body. */
const describeRejection = async (operation: string, response: FetchResponse): Promise<string[]> =>
  response.ok ? [] : [`${operation}: ${response.status} ${await response.text()}`];

test("[HT-40] every JSON body has an example", () => {
  const bodies = listOperations(document).filter(({ body }) => body !== undefined);
  const withoutExample = bodies.filter(
    ({ described }) => described.requestBody?.content["application/json"]?.example === undefined,
  );
  expect(bodies.length).toBeGreaterThan(100);
  expect(withoutExample.map(({ name }) => name)).toEqual([]);
});

test("[HT-40] the API page fills in the reader's own values", async () => {
  const page = await (await admin.fetch("GET", "/swagger/page.js")).text();
  expect(page).toContain("const withIds = ");
  const ids = await loadIds((path) => admin.get(path), Date.now());
  expect(Date.parse(ids.deadline ?? "")).toBeGreaterThan(Date.now() + 1_800_000);
  expect(Object.keys(ids).sort()).toEqual(["deadline", "group_perms", "group_roles", "organization_id", "template_id"]);
});

test("[HT-40] examples for workspaces work as sent", async () => {
  const created = await send(admin, "POST /users/{user}/workspaces");
  expect(created.status).toBe(200);
  const { id } = (await created.json()) as Workspace;
  await awaitBuild(admin, id);
  const path = { workspace: id };
  const runningOperations = [
    "POST /workspaces/{workspace}/usage",
    "PUT /workspaces/{workspace}/ttl",
    "PUT /workspaces/{workspace}/autostart",
    "PUT /workspaces/{workspace}/autoupdates",
    "PATCH /workspaces/{workspace}/acl",
    "POST /workspaces/{workspace}/restart",
  ];
  const problems: string[] = [];
  for (const operation of runningOperations)
    problems.push(...(await describeRejection(operation, await send(admin, operation, path))));
  await awaitWorkspace(
    admin,
    id,
    ({ latest_build: { status, transition } }) => `${transition} ${status}` === "start running",
  );
  const stoppableOperations = [
    "PUT /workspaces/{workspace}/extend",
    "POST /workspaces/{workspace}/port-share",
    "DELETE /workspaces/{workspace}/port-share",
    "PATCH /workspaces/{workspace}",
    "PUT /workspaces/{workspace}/dormant",
  ];
  for (const operation of stoppableOperations)
    problems.push(...(await describeRejection(operation, await send(admin, operation, path))));
  const ben = (await (await send(admin, "POST /users")).json()) as { id: string };
  const members = "POST /organizations/{organization}/members/{user}/workspaces";
  problems.push(
    ...(await describeRejection(members, await send(admin, members, { organization: "default", user: ben.id }))),
  );
  expect(problems).toEqual([]);
});

test("[HT-40] examples for agents work as sent", async () => {
  const seeded = await seedAgent(server, { apps: [{ slug: "web" }] });
  const agent = new Client(server.url, seeded.agent_token);
  const problems: string[] = [];
  for (const operation of [
    "POST /workspaceagents/me/log-source",
    "PATCH /workspaceagents/me/logs",
    "PATCH /workspaceagents/me/app-status",
  ])
    problems.push(...(await describeRejection(operation, await send(agent, operation))));
  expect(problems).toEqual([]);
});

test("[HT-40] examples of instance identities have a valid form and an invalid signature", async () => {
  const outsider = new Client(server.url);
  const statuses = ["cloud-a", "aws", "cloud-b", "azure", "cloud-c", "google"].map(
    async (cloud) => (await send(outsider, `POST /workspaceagents/${cloud}-instance-identity`)).status,
  );
  expect(await Promise.all(statuses)).toEqual(Array(6).fill(401));
});

test("[HT-40] examples for chats work as sent", async () => {
  const problems: string[] = [];
  const created = await send(world.owner, "POST /chats");
  const { id } = (await created.json()) as { id: string };
  expect(created.status).toBe(201);
  (await world.models.next()).say("Hello.").finish();
  const path = { chat: id, message: "1" };
  for (const operation of [
    "POST /chats/{chat}/messages",
    "PATCH /chats/{chat}/messages/{message}",
    "PATCH /chats/{chat}",
    "PATCH /chats/{chat}/acl",
    "POST /chats/{chat}/fork",
  ])
    problems.push(...(await describeRejection(operation, await send(world.owner, operation, path))));
  const waitingChat = await createChat(world, "one", { unsafe_dynamic_tools: [{ name: "ask", input_schema: {} }] });
  let call = await world.models.next();
  while (!JSON.stringify(call.request).includes('"ask"')) call = await world.models.next();
  call.callTool("call_1", "ask").finish("tool_calls");
  await until(
    async () => (await world.owner.get<Chat>(`/api/v2/chats/${waitingChat.id}`)).status === "requires_action",
  );
  const operation = "POST /chats/{chat}/tool-results";
  problems.push(...(await describeRejection(operation, await send(world.owner, operation, { chat: waitingChat.id }))));
  const upload: FetchResponse = await world.owner.fetch(
    "POST",
    `/api/v2/chats/files?organization=${world.organization_id}`,
    "notes",
    {
      headers: { "content-type": "text/plain", "content-disposition": 'attachment; filename="notes.txt"' },
    },
  );
  if (!upload.ok) problems.push(await upload.text());
  expect(problems).toEqual([]);
});

test("[HT-40] examples for settings work as sent", async () => {
  const problems: string[] = [];
  const settings = listOperations(document).filter(
    ({ method, path, body }) =>
      method === "PUT" && body && /^\/api\/v2\/chats\/(config|usage-limits)\/?[^{]*$/.test(path),
  );
  expect(settings.length).toBeGreaterThan(11);
  const otherOperations = [
    "PUT /users/{user}/profile",
    "PUT /users/{user}/appearance",
    "PUT /users/{user}/quiet-hours",
    "PUT /users/{user}/preferences",
    "PUT /users/{user}/dotfiles",
    "POST /users/{user}/keys/tokens",
    "POST /users/{user}/skills",
    "POST /users/{user}/secrets",
    "POST /organizations",
    "POST /organizations/{organization}/groups",
    "POST /organizations/{organization}/provisionerkeys",
    "POST /chats/providers",
    "POST /chats/model-configs",
    "POST /authcheck",
    "PUT /appearance",
    "PUT /audit/retention",
    "PUT /connectionlog/retention",
    "PUT /debug/health/settings",
    "PUT /notifications/settings",
    "PUT /prebuilds/settings",
  ];
  const names = settings.map(({ name }) => name.replace("/api/v2", ""));
  for (const name of [...names, ...otherOperations])
    problems.push(...(await describeRejection(name, await send(admin, name, { organization: "default" }))));
  expect(problems).toEqual([]);
});

test("[HT-40] examples for templates work once an archive is uploaded", async () => {
  const file_id = await uploadFiles(admin, { "template.yaml": ECHO });
  const path = { organization: "default" };
  const version = await send(admin, "POST /organizations/{organization}/templateversions", path, { file_id });
  const { id } = (await version.json()) as { id: string };
  await followImport(admin, id);
  const createdTemplate = await send(admin, "POST /organizations/{organization}/templates", path, {
    template_version_id: id,
  });
  const { id: template } = (await createdTemplate.json()) as { id: string };
  const problems: string[] = [];
  for (const operation of [
    "PATCH /templates/{template}",
    "PATCH /templates/{template}/acl",
    "POST /templates/{template}/versions/archive",
  ])
    problems.push(...(await describeRejection(operation, await send(admin, operation, { template }))));
  expect([version.status, createdTemplate.status, problems]).toEqual([201, 201, []]);
});
