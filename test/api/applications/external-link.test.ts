// Keys in links of external apps: who gets one, what it allows, and when it expires.
import { describe, expect, test } from "bun:test";
import { uuidFromBytes } from "#base/ids.ts";
import { parseLinkTarget } from "#base/links/external-link.ts";
import { insertAgentApp } from "#db/agents/apps.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { Client } from "#src/client.ts";
import { forFile } from "#test/support/for-file.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { getContext } from "#test/support/seed.ts";
import { ADMIN } from "#test/support/server.ts";
import { awaitBuild, createWorkspace } from "#test/support/workspaces.ts";
import { connectAgent } from "../agents/rpc-agent.ts";
import { CALLERS, openSharedWorkspace } from "../workspaces/shared-workspace.ts";

const PLANTED_URL = "vscode://x.y/open?url=https%3A%2F%2Fevil.example&token=$SESSION_TOKEN";
const APPS = [
  {
    slug: "editor",
    url: "vscode://coder.coder-remote/open?url=http%3A%2F%2Flocalhost&token=$SESSION_TOKEN",
    external: true,
  },
  { slug: "bridge", url: "bridge://open?key=$SESSION_TOKEN", external: true },
  { slug: "page", url: "https://example.com/?t=$SESSION_TOKEN", external: true },
  { slug: "plain", url: "vscode://x.y/open", external: true },
  { slug: "inside", url: "http://localhost:3000/?t=$SESSION_TOKEN" },
];
const clock = new ManualClock();
const shared = await forFile(
  openSharedWorkspace({
    clock,
    manifest: { provisioner: "echo", resources: [{ name: "main", agents: [{ name: "dev", apps: APPS }] }] },
  }),
);
const { server, clients, workspace } = shared;
const owner = clients.owner;
const agent_id = workspace.latest_build.resources[0]?.agents?.[0]?.id as string;
const toLinkPath = (slug: string, agent = agent_id) => `/api/v2/workspaceagents/${agent}/apps/${slug}/link` as const;
const getRejection = async (client: Client, slug: string, agent?: string): Promise<[number, string]> => {
  const response = await client.fetch("POST", toLinkPath(slug, agent));
  const { message, detail } = (await response.json()) as { message: string; detail?: string };
  return [response.status, `${message} ${detail}`];
};
const parseKey = (url: string): string => new URL(url).searchParams.get("token") ?? "";
const createKey = async (client: Client = owner): Promise<string> =>
  parseKey((await client.post<{ url: string }>(toLinkPath("editor"))).url);

describe("the link of an external app", () => {
  test("[AX-18] gets a key only for the workspace's owner", async () => {
    const statuses = await Promise.all(
      CALLERS.map(async (name) => [name, (await clients[name].fetch("POST", toLinkPath("editor"))).status]),
    );
    expect(Object.fromEntries(statuses)).toEqual({
      guest: 401,
      agent: 401,
      owner: 201,
      "shared admin": 403,
      "shared use": 403,
      member: 404,
      "template admin": 404,
      "organization admin": 404,
      auditor: 404,
      "site owner": 403,
    });
  });

  test("[AX-18] gets no key for a forbidden scheme, for a web page, or without a placeholder", async () => {
    expect(await getRejection(owner, "bridge")).toEqual([403, expect.stringContaining("external_app_schemes")]);
    for (const slug of ["page", "plain", "inside"]) {
      expect([slug, ...(await getRejection(owner, slug))]).toEqual([
        slug,
        400,
        expect.stringContaining("no placeholder for a key"),
      ]);
    }
    expect((await getRejection(owner, "nothing"))[0]).toBe(404);
  });

  test("[AX-18] gets no key if a program in the workspace declared the app", async () => {
    await using parent = await connectAgent(server, shared.token);
    const { agent: child, appCreationErrors } = await parent.agent.createSubAgent({
      name: "devcontainer",
      apps: [
        { slug: "planted", external: true, url: PLANTED_URL },
        { slug: "fine", external: true, url: "vscode://x.y/" },
      ],
    });
    expect(appCreationErrors).toMatchObject([
      { index: 0, field: "url", error: expect.stringContaining("$SESSION_TOKEN") },
    ]);
    const child_id = uuidFromBytes(child?.id as Uint8Array);
    // A row that an earlier version of the server could have stored.
    const { store } = getContext(server);
    const row = {
      agent_id: child_id,
      slug: "planted",
      external: true,
      url: PLANTED_URL,
      display_name: "Docs",
      open_in: "tab",
    };
    await store.commit([
      insertAgentApp([{ ...row, id: crypto.randomUUID(), sharing_level: "owner", health: "disabled" }]),
    ]);
    expect(await getRejection(owner, "planted", child_id)).toEqual([403, expect.stringContaining("not the template")]);
  });
});

describe("the key in the link of an external app", () => {
  test("[ID-28] gives access only to its workspace", async () => {
    const otherWorkspace = await createWorkspace(owner, shared.template_id, "other");
    const otherAgent = (await awaitBuild(owner, otherWorkspace.id)).latest_build.resources[0]?.agents?.[0];
    const client = owner.withToken(await createKey());
    expect((await client.get<{ username: string }>("/api/v2/users/me")).username).toBe("ada");
    expect(
      (await client.get<{ workspaces: Workspace[] }>("/api/v2/workspaces")).workspaces.map(({ id }) => id),
    ).toEqual([shared.id]);
    expect((await client.get<Workspace>("/api/v2/users/me/workspace/dev")).id).toBe(shared.id);
    expect((await client.fetch("GET", `/api/v2/workspaceagents/${agent_id}`)).status).toBe(200);
    const forbiddenCalls: [string, string, unknown?][] = [
      ["GET", `/api/v2/workspaces/${otherWorkspace.id}`],
      ["GET", "/api/v2/users/me/workspace/other"],
      ["GET", `/api/v2/workspaces/${otherWorkspace.id}/builds`],
      ["POST", `/api/v2/workspaces/${otherWorkspace.id}/builds`, { transition: "stop" }],
      ["GET", `/api/v2/workspacebuilds/${otherWorkspace.latest_build.id}`],
      ["GET", `/api/v2/workspacebuilds/${otherWorkspace.latest_build.id}/logs`],
      ["GET", `/api/v2/workspaceagents/${otherAgent?.id}`],
      ["GET", `/api/v2/workspaceagents/${otherAgent?.id}/files?path=/`],
      ["POST", "/api/v2/users/me/keys"],
      ["POST", "/api/v2/users/me/keys/tokens", {}],
      ["POST", toLinkPath("editor")],
      ["GET", "/api/v2/users/me/keys/tokens"],
      ["GET", "/api/v2/users/me/gitsshkey"],
      ["GET", "/api/v2/users"],
      ["GET", "/api/v2/chats"],
      ["GET", "/api/v2/templates"],
      ["DELETE", `${shared.path}`],
      ["PATCH", `${shared.path}/acl`, { user_roles: {} }],
    ];
    for (const [method, path, body] of forbiddenCalls) {
      const { status } = await client.fetch(method, path as "/api/v2/users", body as never);
      expect([method, path, status >= 400 && status < 500]).toEqual([method, path, true]);
    }
    const appResponse = await fetch(new URL("/@ada/other.dev/apps/9999/", server.url), {
      headers: { "Service-Session-Token": client.token ?? "" },
    });
    expect(appResponse.status).toBe(404);
  });

  test("[ID-28] is valid only for its workspace, even if its user owns the deployment", async () => {
    const { template_id } = shared;
    const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
    const { id } = await createWorkspace(admin, template_id, "bosses");
    const adminsWorkspace = await awaitBuild(admin, id);
    const agent = adminsWorkspace.latest_build.resources[0]?.agents?.[0]?.id as string;
    const { key } = await admin.post<{ key: string }>(`/api/v2/workspaceagents/${agent}/keys`);
    const client = admin.withToken(key);
    expect((await client.fetch("GET", `/api/v2/workspaces/${id}`)).status).toBe(200);
    expect((await client.fetch("GET", `/api/v2/workspaces/${shared.id}`)).status).toBe(404);
    expect(
      (await client.get<{ workspaces: Workspace[] }>("/api/v2/workspaces")).workspaces.map((listed) => listed.id),
    ).toEqual([id]);
    expect((await client.fetch("GET", "/api/v2/users")).status).toBe(403);
  });

  test("[ID-28] is revoked with its open connections when the user signs out, and expires after 8 hours", async () => {
    const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
    const createAdminKey = async () =>
      (await admin.post<{ key: string }>(`/api/v2/workspaceagents/${agent_id}/keys`)).key;
    const [first, second] = [await createAdminKey(), await createAdminKey()];
    const url = new URL(`/api/v2/workspaces/${shared.id}/watch-ws`, server.url);
    url.protocol = "ws:";
    const socket = new WebSocket(url, { headers: { "Service-Session-Token": first } } as never);
    const closed = new Promise<number>((resolve) => {
      socket.onclose = ({ code }) => resolve(code);
    });
    await new Promise((resolve) => {
      socket.onmessage = resolve;
    });
    await admin.post("/api/v2/users/logout");
    expect(await closed).toBe(1008);
    expect((await admin.withToken(first).fetch("GET", "/api/v2/users/me")).status).toBe(401);
    expect((await admin.withToken(second).fetch("GET", "/api/v2/users/me")).status).toBe(401);

    const client = owner.withToken(await createKey());
    for (let hour = 1; hour < 8; hour += 1) {
      clock.advance(3_600_000);
      expect((await client.fetch("GET", "/api/v2/users/me")).status).toBe(200);
    }
    clock.advance(3_600_000);
    expect((await client.fetch("GET", "/api/v2/users/me")).status).toBe(401);
  });

  test("[ID-28] is in the list of tokens, can be deleted, and cannot get more scopes", async () => {
    const id = (await createKey()).slice(0, 10);
    const tokens =
      await owner.get<{ id: string; token_name: string; scopes: string[] }[]>("/api/v2/users/me/keys/tokens");
    const token = tokens.find((listed) => listed.id === id);
    expect(token?.token_name).toMatch(/^dev-editor-/);
    expect(token?.scopes).not.toContain("all");
    const path = `/api/v2/users/me/keys/tokens/${token?.token_name}` as const;
    expect((await owner.fetch("PATCH", path, { scopes: ["all"] })).status).toBe(409);
    await owner.delete(`/api/v2/users/me/keys/${id}`);
  });
});

test.each([
  [PLANTED_URL, { scheme: "vscode", authority: "x.y", hosts: ["evil.example"] }],
  [
    "microsoft-edge:https://evil.example/?t=$SESSION_TOKEN",
    { scheme: "microsoft-edge", authority: "", hosts: ["evil.example"] },
  ],
  ["zed://ssh/?a=https%253A%252F%252Fevil.example%252F", { scheme: "zed", authority: "ssh", hosts: ["evil.example"] }],
  [
    "jetbrains-gateway://connect#type=coder&url=http://a.example:1&x=ws%3A%2F%2Fb.example",
    { scheme: "jetbrains-gateway", authority: "connect", hosts: ["a.example:1", "b.example"] },
  ],
  ["vscode://x.y/1://x?url=https://evil.example/", { scheme: "vscode", authority: "x.y", hosts: ["evil.example"] }],
  [
    "vscode://x.y/http://a.example/?url=https://evil.example",
    { scheme: "vscode", authority: "x.y", hosts: ["a.example", "evil.example"] },
  ],
  [
    `vscode://x.y/?url=https://a.example:${"p".repeat(1_100)}@evil.example/`,
    { scheme: "vscode", authority: "x.y", hosts: ["evil.example"] },
  ],
  ["not a link", undefined],
])("[AX-18] %s shows its destination", (link, target) => {
  expect(parseLinkTarget(link)).toEqual(target);
});

test("[AX-18] a link that is too long to examine receives no key", () => {
  expect(parseLinkTarget(`vscode://x.y/${"a".repeat(8_192)}`)).toBeUndefined();
});
