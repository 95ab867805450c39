// A child's ID under another parent: the child exists and the caller may see it, but not below that parent. Always 404, and the child is
// unchanged. Routes with two IDs come from the OpenAPI document, so a new one fails until it is covered here.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { Client } from "#src/client.ts";
import { fetchDocument, listOperations } from "#test/fuzz/operations.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { type SeededAgent, seedAgent } from "#test/support/seed.ts";
import { ADMIN, startTestServer, type TestServer } from "#test/support/server.ts";
import { ECHO, importVersion, makeTemplate } from "#test/support/templates.ts";
import { seedTemplate } from "#test/support/workspaces.ts";

let server: TestServer;
let admin: Client;
let other: SeededAgent;
let keyId: string;
let mcpId: string;
let templateId: string;
let versionId: string;
let dryRunId: string;
let taskId: string;
let oauth2Path: string;
beforeAll(async () => {
  server = await startTestServer({ clock: new ManualClock(), env: { SLIPWAY_CHAT_DEBUG_LOGGING: "true" } });
  admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  other = await seedAgent(server);
  await admin.post("/api/v2/users/me/keys/tokens", { token_name: "mine" });
  await admin.post("/api/v2/organizations/default/provisionerkeys", { name: "mine" });
  await admin.post("/api/v2/organizations/default/groups", { name: "crew" });
  const entry = { slug: "mine", url: "https://mcp.invalid/" };
  mcpId = (await admin.post<{ id: string }>("/api/v2/organizations/default/mcp-servers", entry)).id;
  const apps = "/api/v2/oauth2-provider/apps";
  const makeApp = (name: string) => admin.post<{ id: string }>(apps, { name, callback_url: "https://app.invalid/" });
  const mine = await admin.post<{ id: string }>(`${apps}/${(await makeApp("mine")).id}/secrets`);
  oauth2Path = `${apps}/${(await makeApp("other")).id}/secrets/${mine.id}`;
  keyId = (admin.token as string).split("-")[0] as string;
  const template = await makeTemplate(admin, ECHO, { name: "mine" });
  templateId = template.id;
  const made = await importVersion(admin, ECHO);
  versionId = made.id;
  dryRunId = (await admin.post<{ id: string }>(`/api/v2/templateversions/${template.active_version_id}/dry-run`, {}))
    .id;
  const { id: organization_id } = await admin.get<{ id: string }>("/api/v2/organizations/default");
  const task = { input: "hang: on", template_id: (await seedTemplate(server)).template_id };
  taskId = (await admin.post<{ id: string }>("/api/v2/tasks/me", task)).id;
  const content = [{ type: "text", text: "hang: on" }];
  for (const name of ["mine", "other"] as const) {
    const { id } = await admin.post<{ id: string }>("/api/v2/chats", { organization_id, content });
    const sent = await admin.post<{ queued_message: { id: number } }>(`/api/v2/chats/${id}/messages`, { content });
    const { messages } = await admin.get<{ messages: { id: number }[] }>(`/api/v2/chats/${id}/messages`);
    chats[name] = { id, message: messages[0]?.id ?? 0, queued: sent.queued_message.id };
    // Its turn hangs forever; its start is recorded slightly later.
    while (name === "mine" && runId === "") {
      runId = (await admin.get<{ id: string }[]>(`/api/v2/chats/${id}/debug/runs`))[0]?.id ?? "";
    }
  }
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

let runId = "";
const chats: Record<"mine" | "other", { id: string; message: number; queued: number }> = {
  mine: { id: "", message: 0, queued: 0 },
  other: { id: "", message: 0, queued: 0 },
};
const toQueuedPath = () => `/api/v2/chats/${chats.other.id}/queue/${chats.mine.queued}`;

type Case = { path: () => string; body?: unknown };

const key = () => `/api/v2/users/${other.owner_id}/keys/${keyId}`;
const mcp = () => `/api/v2/organizations/${other.organization_id}/mcp-servers/${mcpId}`;
const member = () => `/api/v2/organizations/default/members/${other.owner_id}`;

/** The site's owner, who can see everything, makes the call: only the parent is wrong. */
const CASES: Record<string, Case> = {
  "DELETE /api/v2/oauth2-provider/apps/{oauth2_app}/secrets/{oauth2_secret}": { path: () => oauth2Path },
  "GET /api/v2/organizations/{organization}/members/{user}": { path: member },
  "DELETE /api/v2/organizations/{organization}/members/{user}": { path: member },
  "PUT /api/v2/organizations/{organization}/members/{user}/roles": {
    path: () => `${member()}/roles`,
    body: { roles: [] },
  },
  "GET /api/v2/organizations/{organization}/provisionerkeys/{key}": {
    path: () => `/api/v2/organizations/${other.organization_id}/provisionerkeys/mine`,
  },
  "DELETE /api/v2/organizations/{organization}/provisionerkeys/{key}": {
    path: () => `/api/v2/organizations/${other.organization_id}/provisionerkeys/mine`,
  },
  "GET /api/v2/organizations/{organization}/mcp-servers/{mcp_server}": { path: mcp },
  "PATCH /api/v2/organizations/{organization}/mcp-servers/{mcp_server}": { path: mcp, body: { display_name: "no" } },
  "DELETE /api/v2/organizations/{organization}/mcp-servers/{mcp_server}": { path: mcp },
  "POST /api/v2/organizations/{organization}/mcp-servers/{mcp_server}/try": { path: () => `${mcp()}/try` },
  "POST /api/v2/organizations/{organization}/mcp-servers/{mcp_server}/oauth2/start": {
    path: () => `${mcp()}/oauth2/start`,
  },
  "GET /api/v2/organizations/{organization}/mcp-servers/{mcp_server}/oauth2/callback": {
    path: () => `${mcp()}/oauth2/callback`,
  },
  "DELETE /api/v2/organizations/{organization}/mcp-servers/{mcp_server}/oauth2": { path: () => `${mcp()}/oauth2` },
  "GET /api/v2/organizations/{organization}/members/{user}/workspace-quota": {
    path: () => `${member()}/workspace-quota`,
  },
  "GET /api/v2/organizations/{organization}/groups/{groupName}": {
    path: () => `/api/v2/organizations/${other.organization_id}/groups/crew`,
  },
  "GET /api/v2/users/{user}/organizations/{organization}": {
    path: () => `/api/v2/users/me/organizations/${other.organization_id}`,
  },
  "GET /api/v2/users/{user}/keys/tokens/{name}": { path: () => `/api/v2/users/${other.owner_id}/keys/tokens/mine` },
  "PATCH /api/v2/users/{user}/keys/tokens/{name}": {
    path: () => `/api/v2/users/${other.owner_id}/keys/tokens/mine`,
    body: { allowed_addresses: [] },
  },
  "DELETE /api/v2/users/{user}/sessions/{session}": {
    path: () => `/api/v2/users/${other.owner_id}/sessions/${keyId}`,
  },
  "GET /api/v2/users/{user}/keys/{key}": { path: key },
  "DELETE /api/v2/users/{user}/keys/{key}": { path: key },
  "PUT /api/v2/users/{user}/keys/{key}/expire": { path: () => `${key()}/expire` },
  "GET /api/v2/organizations/{organization}/templates/{name}": {
    path: () => `/api/v2/organizations/${other.organization_id}/templates/mine`,
  },
  ...Object.fromEntries(
    ["GET ", "GET /resources", "GET /logs", "GET /matched-provisioners", "PATCH /cancel"].map((one) => {
      const [method, rest = ""] = one.split(" ");
      const name = `${method} /api/v2/templateversions/{templateversion}/dry-run/{job}${rest}`;
      return [name, { path: () => `/api/v2/templateversions/${versionId}/dry-run/${dryRunId}${rest}` }];
    }),
  ),
  "GET /api/v2/organizations/{organization}/templates/{name}/versions/{version}": {
    path: () => `/api/v2/organizations/${other.organization_id}/templates/mine/versions/v1`,
  },
  "GET /api/v2/organizations/{organization}/templates/{name}/versions/{version}/previous": {
    path: () => `/api/v2/organizations/${other.organization_id}/templates/mine/versions/v1/previous`,
  },
  "GET /api/v2/organizations/{organization}/provisionerjobs/{job}": {
    path: () => `/api/v2/organizations/${other.organization_id}/provisionerjobs/${dryRunId}`,
  },
  "GET /api/v2/organizations/{organization}/provisionerjobs/{job}/logs": {
    path: () => `/api/v2/organizations/${other.organization_id}/provisionerjobs/${dryRunId}/logs`,
  },
  "GET /api/v2/templates/{template}/versions/{name}": { path: () => `/api/v2/templates/${templateId}/versions/none` },
  "GET /api/v2/users/{user}/workspace/{workspacename}": { path: () => "/api/v2/users/me/workspace/dev" },
  "GET /api/v2/users/{user}/workspace/{workspacename}/builds/{buildnumber}": {
    path: () => "/api/v2/users/me/workspace/dev/builds/1",
  },
  ...Object.fromEntries(
    ["GET ", "PATCH /input", "POST /send", "GET /logs", "POST /pause", "POST /resume", "DELETE "].map((one) => {
      const [method, rest = ""] = one.split(" ");
      const path = () => `/api/v2/tasks/${other.owner_id}/${taskId}${rest}`;
      const body = rest === "/input" || rest === "/send" ? { input: "no" } : undefined;
      return [`${method} /api/v2/tasks/{user}/{task}${rest}`, { path, body }];
    }),
  ),
  "DELETE /api/v2/chats/{chat}/queue/{queuedMessage}": { path: toQueuedPath },
  "POST /api/v2/chats/{chat}/queue/{queuedMessage}/promote": { path: () => `${toQueuedPath()}/promote` },
  "GET /api/v2/chats/{chat}/debug/runs/{run}": {
    path: () => `/api/v2/chats/${chats.other.id}/debug/runs/${runId}`,
  },
  "PATCH /api/v2/chats/{chat}/messages/{message}": {
    path: () => `/api/v2/chats/${chats.other.id}/messages/${chats.mine.message}`,
    body: { content: [{ type: "text", text: "no" }] },
  },
};

/** Routes whose two IDs are not a parent and its child. */
const OTHERWISE: Record<string, string> = {
  "GET /init-script/{os}/{arch}": "neither is an id",
  "GET /api/v2/init-script/{os}/{arch}": "neither is an id",
  "POST /api/v2/workspaceagents/{workspaceagent}/containers/devcontainers/{devcontainer}/recreate":
    "the agent itself is asked, which knows only its own",
  "DELETE /api/v2/workspaceagents/{workspaceagent}/containers/devcontainers/{devcontainer}":
    "the agent itself is asked, which knows only its own",
  "POST /api/v2/workspaceagents/{workspaceagent}/apps/{app}/link": "the second is a slug of that agent",
  "POST /api/v2/workspaces/{workspace}/snapshots/{snapshot}/restore":
    "needs files: shown by the snapshots of workspaces",
  "DELETE /api/v2/workspaces/{workspace}/snapshots/{snapshot}": "needs files: shown by the snapshots of workspaces",
  "POST /api/v2/workspaces/{workspace}/home-backups/{backup}/fetch":
    "needs files: shown by the home backups of workspaces",
  "DELETE /api/v2/workspaces/{workspace}/home-backups/{backup}": "needs files: shown by the home backups of workspaces",
  "GET /api/v2/workspaces/{workspace}/forks/{fork}": "needs files: shown by the forks of workspaces",
  ...Object.fromEntries(
    ["GET ", "GET /ways/{way}/diff", "POST /stop", "POST /keep", "POST /discard"].map((one) => {
      const [method, rest = ""] = one.split(" ");
      return [`${method} /api/v2/chats/{chat}/trials/{trial}${rest}`, "needs files: shown by the trials of chats"];
    }),
  ),
  "GET /api/v2/workspaces/{workspace}/external-agent/{agent}/credentials": "the agent is a name in that workspace",
  "POST /api/v2/organizations/{organization}/members/{user}": "makes anybody a member",
  "PUT /api/v2/users/{user}/status/{status}": "the second is no id",
  "PUT /api/v2/organizations/{organization}/chats/model-overrides/{context}": "the second is no id",
  "PATCH /api/v2/users/{user}/passkeys/{passkey}": "another's are refused, each handles their own",
  "DELETE /api/v2/users/{user}/passkeys/{passkey}": "another's are refused, each handles their own",
  "DELETE /api/v2/users/{user}/oauth2-grants/{grant}": "another's are refused (OA-15)",
  "GET /api/v2/users/{user}/secrets/{secret}": "another's are refused (US-1)",
  "PATCH /api/v2/users/{user}/secrets/{secret}": "another's are refused (US-1)",
  "DELETE /api/v2/users/{user}/secrets/{secret}": "another's are refused (US-1)",
  "DELETE /api/v2/users/{user}/deploy-keys/{deploy_key}": "another's are refused (DK-3)",
  "GET /api/v2/users/{user}/skills/{skill}": "another's are refused (CX-13)",
  "PATCH /api/v2/users/{user}/skills/{skill}": "another's are refused (CX-13)",
  "DELETE /api/v2/users/{user}/skills/{skill}": "another's are refused (CX-13)",
  "GET /api/v2/organizations/{organization}/members/{user}/chats/model-overrides":
    "another's are refused, and one's own need membership (MW-2)",
  "PUT /api/v2/organizations/{organization}/members/{user}/chats/model-overrides/{context}":
    "another's are refused, and one's own need membership (MW-2)",
  "POST /api/v2/organizations/{organization}/members/{user}/workspaces": "the template decides the organization",
  "GET /api/v2/organizations/{organization}/members/{user}/workspaces/available-users":
    "lists the organization's members, regardless of the user",
};

test("[HT-14] every route with two IDs is checked", async () => {
  const twoIds = listOperations(await fetchDocument(server.url)).filter(
    ({ parameters }) => parameters.filter((one) => one.in === "path").length > 1,
  );
  expect(twoIds.map(({ name }) => name).sort()).toEqual([...Object.keys(CASES), ...Object.keys(OTHERWISE)].sort());
});

test.each(Object.entries(CASES))("[HT-14] %s: under another parent it is not there", async (name, { path, body }) => {
  const response = await admin.fetch(name.split(" ")[0] as string, path(), body);
  expect([path(), response.status]).toEqual([path(), 404]);
  expect(await response.json()).toEqual({
    message: "Resource not found or you do not have access to this resource.",
  });
});

test("[HT-14] the children are still there, under their own parents", async () => {
  const statuses = await Promise.all(
    [
      `/api/v2/users/me/keys/${keyId}`,
      `/api/v2/tasks/me/${taskId}`,
      "/api/v2/users/me/keys/tokens/mine",
      `/api/v2/organizations/default/mcp-servers/${mcpId}`,
      `/api/v2/organizations/${other.organization_id}/members/${other.owner_id}`,
      `/api/v2/users/${other.owner_id}/organizations/${other.organization_id}`,
      "/api/v2/organizations/default/templates/mine",
    ].map(async (path) => [path, (await admin.fetch("GET", path)).status]),
  );
  expect(statuses.filter(([, status]) => status !== 200)).toEqual([]);
});
