// Opening parts of a workspace, in a real browser: apps, editors and terminals of two agents.
import { expect } from "bun:test";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { Client } from "#src/client.ts";
import { startDaemon, TOKEN } from "#test/daemon/support/daemon.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { ADMIN, startTestServer } from "#test/support/server.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { awaitBuild, awaitWorkspace, createWorkspace } from "#test/support/workspaces.ts";
import { listPageErrors, runStory } from "./story.ts";

const OTHER_TOKEN = "22222222-2222-4333-8444-555555555555";
const APPS = [
  {
    slug: "by-command",
    display_name: "By command",
    command: "echo ran-$((6 * 7)); exec sh",
    icon: "/icon/terminal.svg",
  },
  { slug: "by-name", display_name: "By name", url: "http://localhost:4242", subdomain: true },
  {
    slug: "handbook",
    display_name: "Handbook",
    url: "https://example.com/?t=$SESSION_TOKEN",
    external: true,
    tooltip: "How we work",
    icon: "/emojis/1f4d6.png",
    group: "Elsewhere",
  },
  {
    slug: "bridge",
    display_name: "Bridge",
    url: "bridge://open?at=https%3A%2F%2Felsewhere.example&key=$SESSION_TOKEN",
    external: true,
    group: "Elsewhere",
    icon: "/icon/none-of-ours.svg",
  },
  { slug: "secret", display_name: "Hidden", url: "http://localhost:1", hidden: true },
];

testNeeding(
  [needs.chromium, needs.node],
  "[WB-75] apps open as their template configures them, and only links to programs contain a key; each agent has its own terminal and editors",
  async () => {
    await using server = await startTestServer({
      env: {
        SLIPWAY_EXTERNAL_APP_SCHEMES: "bridge",
        // Not a loopback name, so apps have no hosts of their own.
        SLIPWAY_ACCESS_URL: "http://slipway.example.test",
        SLIPWAY_ALLOWED_HOSTS: "127.0.0.1,localhost",
      },
    });
    const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
    const agents = [
      { name: "one", token: TOKEN, apps: APPS },
      { name: "two", token: OTHER_TOKEN, env: { WHICH: "two" }, display_apps: ["vscode", "web_terminal"] },
    ];
    const template = await makeTemplate(
      admin,
      JSON.stringify({ provisioner: "echo", resources: [{ name: "main", agents }] }),
    );
    const { id } = await createWorkspace(admin, template.id);
    await awaitBuild(admin, id);
    await using _firstDaemon = startDaemon({ url: server.url });
    await using _secondDaemon = startDaemon({ url: server.url, token: OTHER_TOKEN });
    const areAgentsConnected = ({ latest_build }: Workspace): boolean =>
      latest_build.resources.flatMap((resource) => resource.agents).every(({ status }) => status === "connected");
    await awaitWorkspace(admin, id, areAgentsConnected);
    const result = await runStory<{ cursor: string; bridge: string }>("open.mjs", [
      server.url.href,
      admin.token ?? "",
      id,
    ]);
    expect(result).toMatchObject({
      problems: [],
      tabs: 0,
      tooltip: "How we work",
      asks: ["elsewhere.example"],
      warns: true,
      handbook: "https://example.com/?t=$SESSION_TOKEN",
      editors: ["VS Code", "VSCodium", "Cursor", "Windsurf", "JetBrains Gateway"],
    });
    expect(result.items).not.toContain("Hidden");
    const cursor = new URL(result.cursor);
    expect(Object.fromEntries(cursor.searchParams)).toMatchObject({
      url: server.url.origin,
      owner: "admin",
      workspace: "dev",
      agent: "two",
    });
    for (const key of [cursor.searchParams.get("token"), new URL(result.bridge).searchParams.get("key")]) {
      const user = await new Client(server.url, key ?? "").get<{ username: string }>("/api/v2/users/me");
      expect(user.username).toBe("admin");
      expect((await new Client(server.url, key ?? "").fetch("GET", "/api/v2/users")).status).toBe(403);
    }
    expect(result.row).toEqual(
      expect.arrayContaining(["Terminal", "New chat", "By command", "Bridge", "Handbook", "Cursor"]),
    );
    expect(listPageErrors(result)).toEqual([]);
  },
  scaleTimeout(240_000),
);
