// Who can open apps and shared ports of a workspace, and what other people see instead.
import { describe, expect, test } from "bun:test";
import type { WorkspaceAgent } from "#schema/agents/agent.ts";
import { forFile } from "#test/support/for-file.ts";
import { getContext } from "#test/support/seed.ts";
import { until } from "#test/support/until.ts";
import type { CallerName } from "../workspaces/shared-workspace.ts";
import { type Echo, startAppWorld } from "./app-world.ts";

const world = await forFile(
  startAppWorld({
    apps: (port) =>
      (["owner", "organization", "authenticated", "public"] as const).map((share) => ({
        slug: share,
        url: `http://localhost:${port}`,
        share,
      })),
  }),
);

const getToken = (name: CallerName): string | undefined => world.shared.clients[name].token;
const sharePort = (share_level: string, port = world.app.port, protocol = "http") =>
  world.owner.post(`${world.shared.path}/port-share`, { agent_name: "dev", port, protocol, share_level });
const browserHeaders = { accept: "text/html,application/xhtml+xml" };

/** Returns every caller's status, after checking that it is the same below the access URL and on the app's host. */
const fetchStatuses = async (app: string): Promise<Record<string, number>> => {
  const statusByCaller: Record<string, number> = {};
  for (const name of [
    "owner",
    "shared use",
    "member",
    "template admin",
    "auditor",
    "site owner",
    "agent",
    "guest",
  ] as const) {
    const token = getToken(name);
    const [byPath, onHost] = [await world.get(world.path(app), { token }), await world.at(app, "/", { token })];
    expect([name, byPath.status]).toEqual([name, onHost.status]);
    statusByCaller[name] = byPath.status;
  }
  return statusByCaller;
};

const USERS = { owner: 200, "shared use": 200, "site owner": 200 };
const OTHERS = { member: 404, "template admin": 404, auditor: 404, agent: 401, guest: 401 };
const MEMBERS = { member: 200, "template admin": 200, auditor: 200 };

describe("an app or a port", () => {
  test("[AX-4] opens only for the people that its share level includes", async () => {
    expect(await fetchStatuses("owner")).toEqual({ ...USERS, ...OTHERS });
    expect(await fetchStatuses("organization")).toEqual({ ...USERS, ...OTHERS, ...MEMBERS });
    expect(await fetchStatuses("authenticated")).toEqual({ ...USERS, ...OTHERS, ...MEMBERS });
    expect(await fetchStatuses("public")).toEqual({ ...USERS, ...MEMBERS, agent: 200, guest: 200 });
  });

  test("[AX-4] opens a port for users of the workspace, and for other people only while it is shared", async () => {
    const port = String(world.app.port);
    expect(await fetchStatuses(port)).toEqual({ ...USERS, ...OTHERS });
    await sharePort("organization");
    expect(await fetchStatuses(port)).toEqual({ ...USERS, ...OTHERS, ...MEMBERS });
    await sharePort("public");
    expect((await fetchStatuses(port)).guest).toBe(200);
    const deleteResponse = await world.owner.fetch("DELETE", `${world.shared.path}/port-share`, {
      agent_name: "dev",
      port: world.app.port,
    });
    expect(deleteResponse.status).toBe(200);
    expect(await fetchStatuses(port)).toEqual({ ...USERS, ...OTHERS });
  });

  test("[AX-3] asks a person without a session to sign in, even if it does not exist", async () => {
    for (const app of ["owner", "none"]) {
      const byPath = await world.get(world.path(app, "/x?y=1"), { headers: browserHeaders });
      const signInQuery = new URLSearchParams({ redirect: world.path(app, "/x?y=1") });
      expect([byPath.status, byPath.headers.get("location")]).toEqual([307, `/login?${signInQuery}`]);
      const onHost = await world.at(app, "/x?y=1", { headers: browserHeaders });
      const signInUrl = new URL(onHost.headers.get("location") ?? "");
      expect([onHost.status, signInUrl.origin, signInUrl.pathname]).toEqual([
        307,
        world.server.url.origin,
        "/api/v2/applications/auth-redirect",
      ]);
      expect(signInUrl.searchParams.get("redirect_uri")).toBe(
        `http://${world.host(app)}:${world.server.url.port}/x?y=1`,
      );
    }
    const programResponse = await world.get(world.path("owner"));
    expect([programResponse.status, programResponse.headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
  });

  test("[AX-4] rejects writes with the cookie from pages of other origins", async () => {
    const cookie = `service_session_token=${world.token}`;
    const post = async (headers: Record<string, string>) =>
      (await world.get(world.path("owner"), { method: "POST", headers: { cookie, ...headers } })).status;
    const { origin } = world.server.url;
    expect(await post({ origin })).toBe(200);
    expect(await post({})).toBe(200);
    for (const foreignOrigin of [
      "https://evil.example",
      "null",
      `${origin}.evil.example`,
      `http://${world.host("owner")}`,
    ]) {
      expect([foreignOrigin, await post({ origin: foreignOrigin })]).toEqual([foreignOrigin, 403]);
    }
    expect(await post({ "sec-fetch-site": "same-site" })).toBe(403);
  });

  test("[AX-2] has exactly one hostname, which serves only the app", async () => {
    const { token } = world;
    const fetchStatusAt = async (host: string) =>
      (await world.get("/api/v2/users/me", { token, headers: { host } })).status;
    const appHost = world.host("owner");
    const received = (await (
      await world.get("/api/v2/users/me", { token, headers: { host: appHost } })
    ).json()) as Echo;
    expect(received.path).toBe("/api/v2/users/me");
    expect(await fetchStatusAt(`${appHost}:1234`)).toBe(200);
    expect(await fetchStatusAt(appHost.toUpperCase())).toBe(200);
    const invalidHosts = [
      ...[
        "apps.example.test",
        "x.apps.example.test",
        `a.${appHost}`,
        `${appHost}.evil.example`,
        `evil${appHost.slice(5)}x`,
      ],
      ...[
        appHost.replace("apps.", "apps-"),
        appHost.replace("--dev--dev", "--dev"),
        appHost.replace("--dev--dev", "--dev--dev--dev"),
      ],
      ...[`-${appHost}`, appHost.replace("--ada", "----ada"), appHost.replace("--ada", "--ada-")],
    ];
    for (const host of invalidHosts) expect([host, await fetchStatusAt(host)]).toEqual([host, 421]);
  });

  test("[AX-5] that is unreachable explains the reason only to users of the workspace, as a page or as JSON", async () => {
    await using ownWorld = await startAppWorld({
      apps: (port) => [{ slug: "mine", url: `http://localhost:${port}`, share: "public" }],
    });
    const { shared, token } = ownWorld;
    const openApp = async (caller: CallerName = "owner") => {
      const credentials = { token: shared.clients[caller].token };
      const jsonResponse = await ownWorld.get(ownWorld.path("mine"), credentials);
      const pageResponse = await ownWorld.get(ownWorld.path("mine"), { ...credentials, headers: browserHeaders });
      expect(jsonResponse.status).toBe(pageResponse.status);
      return {
        status: jsonResponse.status,
        ...((await jsonResponse.json()) as { message: string }),
        html: await pageResponse.text(),
      };
    };
    await ownWorld.app[Symbol.asyncDispose]();
    const loadAgent = () => ownWorld.owner.get<WorkspaceAgent>(`/api/v2/workspaceagents/${ownWorld.agent_id}`);
    await until(async () => (await loadAgent()).lifecycle_state === "ready");
    // Moves the agent's start into the past, so that the app does not count as starting.
    await getContext(ownWorld.server).store.commit([{ sql: "update agents set ready_at = 1", rows: [[]] }]);
    const unresponsive = await openApp();
    expect(unresponsive).toMatchObject({ status: 502, message: "The app is not responding." });
    expect(unresponsive.html).toContain("<h1>The app is not responding</h1>");
    const response = await ownWorld.get(ownWorld.path("mine"), { token, headers: browserHeaders });
    expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(response.headers.get("content-security-policy")).toMatch(/^default-src 'none'; style-src 'sha256-[\w+/=]+'/);
    await ownWorld.daemon[Symbol.asyncDispose]();
    expect(await openApp()).toMatchObject({ status: 503, message: "The workspace cannot be reached." });
    await shared.clients.owner.put(`${shared.path}/dormant`, { dormant: true });
    expect(await openApp()).toMatchObject({ status: 503, message: "The workspace is dormant." });
    const member = await openApp("member");
    expect(member).toMatchObject({ status: 404, message: "Nothing to open here." });
  });
});
