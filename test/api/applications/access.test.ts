// Who may open apps and shared ports of a workspace, what others see instead, and which connections end when access is revoked.
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
const share = (share_level: string, port = world.app.port, protocol = "http") =>
  world.owner.post(`${world.shared.path}/port-share`, { agent_name: "dev", port, protocol, share_level });
const page = { accept: "text/html,application/xhtml+xml" };

/** Returns every caller's status, below the access URL and on the app's host, which must be equal. */
const statuses = async (app: string): Promise<Record<string, number>> => {
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
    const [below, onHost] = [await world.get(world.path(app), { token }), await world.at(app, "/", { token })];
    expect([name, below.status]).toEqual([name, onHost.status]);
    statusByCaller[name] = below.status;
  }
  return statusByCaller;
};

const USERS = { owner: 200, "shared use": 200, "site owner": 200 };
const OTHERS = { member: 404, "template admin": 404, auditor: 404, agent: 401, guest: 401 };
const MEMBERS = { member: 200, "template admin": 200, auditor: 200 };

describe("an app or a port", () => {
  test("[AX-4] opens only for the people that its share level includes", async () => {
    expect(await statuses("owner")).toEqual({ ...USERS, ...OTHERS });
    expect(await statuses("organization")).toEqual({ ...USERS, ...OTHERS, ...MEMBERS });
    expect(await statuses("authenticated")).toEqual({ ...USERS, ...OTHERS, ...MEMBERS });
    expect(await statuses("public")).toEqual({ ...USERS, ...MEMBERS, agent: 200, guest: 200 });
  });

  test("[AX-4] opens an unshared port only for users of the workspace, and for others while it is shared", async () => {
    const port = String(world.app.port);
    expect(await statuses(port)).toEqual({ ...USERS, ...OTHERS });
    await share("organization");
    expect(await statuses(port)).toEqual({ ...USERS, ...OTHERS, ...MEMBERS });
    await share("public");
    expect((await statuses(port)).guest).toBe(200);
    const deleteResponse = await world.owner.fetch("DELETE", `${world.shared.path}/port-share`, {
      agent_name: "dev",
      port: world.app.port,
    });
    expect(deleteResponse.status).toBe(200);
    expect(await statuses(port)).toEqual({ ...USERS, ...OTHERS });
  });

  test("[AX-3] asks a person without a session to sign in, whether it exists or not", async () => {
    for (const app of ["owner", "none"]) {
      const below = await world.get(world.path(app, "/x?y=1"), { headers: page });
      const back = new URLSearchParams({ redirect: world.path(app, "/x?y=1") });
      expect([below.status, below.headers.get("location")]).toEqual([307, `/login?${back}`]);
      const onHost = await world.at(app, "/x?y=1", { headers: page });
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
    const program = await world.get(world.path("owner"));
    expect([program.status, program.headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
  });

  test("[AX-4] rejects writes with the cookie from pages of other origins", async () => {
    const cookie = `service_session_token=${world.token}`;
    const post = async (headers: Record<string, string>) =>
      (await world.get(world.path("owner"), { method: "POST", headers: { cookie, ...headers } })).status;
    const { origin } = world.server.url;
    expect(await post({ origin })).toBe(200);
    expect(await post({})).toBe(200);
    for (const foreign of ["https://evil.example", "null", `${origin}.evil.example`, `http://${world.host("owner")}`]) {
      expect([foreign, await post({ origin: foreign })]).toEqual([foreign, 403]);
    }
    expect(await post({ "sec-fetch-site": "same-site" })).toBe(403);
  });

  test("[AX-2] has exactly one form of hostname, which serves only the app", async () => {
    const { token } = world;
    const to = async (host: string) => (await world.get("/api/v2/users/me", { token, headers: { host } })).status;
    const appHost = world.host("owner");
    const received = (await (
      await world.get("/api/v2/users/me", { token, headers: { host: appHost } })
    ).json()) as Echo;
    expect(received.path).toBe("/api/v2/users/me");
    expect(await to(`${appHost}:1234`)).toBe(200);
    expect(await to(appHost.toUpperCase())).toBe(200);
    const problems = [
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
    for (const host of problems) expect([host, await to(host)]).toEqual([host, 421]);
  });

  test("[AX-5] explains only to users of the workspace why it is unreachable, as a page or as JSON", async () => {
    await using other = await startAppWorld({
      apps: (port) => [{ slug: "mine", url: `http://localhost:${port}`, share: "public" }],
    });
    const { shared, token } = other;
    const openApp = async (who: CallerName = "owner") => {
      const requested = { token: shared.clients[who].token };
      const answer = await other.get(other.path("mine"), requested);
      const html = await other.get(other.path("mine"), { ...requested, headers: page });
      expect(answer.status).toBe(html.status);
      return { status: answer.status, ...((await answer.json()) as { message: string }), html: await html.text() };
    };
    await other.app[Symbol.asyncDispose]();
    const agent = () => other.owner.get<WorkspaceAgent>(`/api/v2/workspaceagents/${other.agent_id}`);
    await until(async () => (await agent()).lifecycle_state === "ready");
    // Pretends that the agent started long ago, so that the app does not count as still starting.
    await getContext(other.server).store.commit([{ sql: "update agents set ready_at = 1", rows: [[]] }]);
    const silent = await openApp();
    expect(silent).toMatchObject({ status: 502, message: "The app is not responding." });
    expect(silent.html).toContain("<h1>The app is not responding</h1>");
    const response = await other.get(other.path("mine"), { token, headers: page });
    expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(response.headers.get("content-security-policy")).toMatch(/^default-src 'none'; style-src 'sha256-[\w+/=]+'/);
    await other.daemon[Symbol.asyncDispose]();
    expect(await openApp()).toMatchObject({ status: 503, message: "The workspace cannot be reached." });
    await shared.clients.owner.put(`${shared.path}/dormant`, { dormant: true });
    expect(await openApp()).toMatchObject({ status: 503, message: "The workspace is dormant." });
    const outsider = await openApp("member");
    expect(outsider).toMatchObject({ status: 404, message: "Nothing to open here." });
  });
});
