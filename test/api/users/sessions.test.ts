// Sessions and tokens: devices, addresses, scopes, and ending their connections.
import { expect, test } from "bun:test";
import { parseDevice } from "#domain/users/device.ts";
import type { ApiKey, Session } from "#schema/users/api-key.ts";
import { Client } from "#src/client.ts";
import { serverForFile } from "#test/support/for-file.ts";
import { describeInProcess } from "#test/support/in-process.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { seedAgent } from "#test/support/seed.ts";
import { fetchStatus, newPerson, PASSWORD } from "./people.ts";

const MINUTE = 60_000;
const FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
const SAFARI =
  "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Safari/605.1.15";
const EDGE =
  "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36 Edg/141.0.0.0";
const PIXEL =
  "Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Mobile Safari/537.36";

const clock = new ManualClock();
const { server, admin } = await serverForFile({ clock, env: { SLIPWAY_TRUSTED_PROXIES: "127.0.0.1" } });

/** Signs in from an address with a user agent, and returns the token. */
const signIn = async (name: string, address: string, userAgent: string): Promise<string> => {
  const headers = { "x-forwarded-for": address, "user-agent": userAgent };
  const body = { email: `${name}@example.com`, password: PASSWORD };
  const response = await new Client(server.url).fetch("POST", "/api/v2/users/login", body, { headers });
  return ((await response.json()) as { session_token: string }).session_token;
};
const sendFrom = (token: string, address: string, method = "GET", path = "/api/v2/users/me") =>
  new Client(server.url).withToken(token).fetch(method, path, undefined, { headers: { "x-forwarded-for": address } });

test.each([
  [FIREFOX, "Firefox 140", "Linux", "browser"],
  [SAFARI, "Safari 18", "macOS", "browser"],
  [EDGE, "Edge 141", "Windows", "browser"],
  [PIXEL, "Chrome 141", "Android", "browser"],
  ["coder-cli/v2.30.1 (linux/amd64; coder)", "coder-cli 2.30.1", "Linux", "program"],
  ["curl/8.14.1", "curl 8.14.1", "", "program"],
  ["Mozilla/5.0 (compatible)", "", "", "unknown"],
  ["", "", "", "unknown"],
  ["<script>alert(1)</script>", "", "", "unknown"],
])("[ID-23] %p is %p on %p", (userAgent, client, os, kind) => {
  expect(parseDevice(userAgent)).toEqual({ client, os, kind: kind as never });
});

describeInProcess("sessions", () => {
  test("[ID-23] lists each with device and address; a user revokes one, or all but the current", async () => {
    await newPerson(admin, "kim");
    const [laptop, phone, desktop] = [
      await signIn("kim", "192.0.2.1", FIREFOX),
      await signIn("kim", "192.0.2.2", PIXEL),
      await signIn("kim", "2001:db8::7", EDGE),
    ];
    const kim = admin.withToken(laptop);
    const { key: token } = await kim.post<{ key: string }>("/api/v2/users/me/keys/tokens", { token_name: "ci" });
    const listSessions = () => kim.get<Session[]>("/api/v2/users/me/sessions");
    const sessionList = await listSessions();
    const findSession = (key: string) => sessionList.find(({ id }) => id === key.slice(0, 10));
    expect(sessionList).toHaveLength(4);
    expect(findSession(laptop)).toMatchObject({
      current: true,
      ip_address: "192.0.2.1",
      device: { client: "Firefox 140" },
    });
    expect(findSession(phone)).toMatchObject({ current: false, ip_address: "192.0.2.2", device: { os: "Android" } });
    expect(findSession(desktop)).toMatchObject({ ip_address: "2001:db8::7", user_agent: EDGE });
    expect(JSON.stringify(sessionList)).not.toContain(phone.slice(11));
    // The token is not a session, and cannot be revoked as one.
    expect(findSession(token)).toBeUndefined();
    expect(await fetchStatus(kim, "DELETE", `/users/me/sessions/${token.slice(0, 10)}`)).toBe(404);
    expect(await fetchStatus(kim, "DELETE", `/users/me/sessions/${phone.slice(0, 10)}`)).toBe(204);
    expect((await sendFrom(phone, "192.0.2.2")).status).toBe(401);
    expect((await sendFrom(desktop, "2001:db8::7")).status).toBe(200);
    expect(await fetchStatus(kim, "DELETE", "/users/me/sessions")).toBe(204);
    expect((await sendFrom(desktop, "2001:db8::7")).status).toBe(401);
    expect((await listSessions()).map(({ id }) => id)).toEqual([laptop.slice(0, 10)]);
    expect((await sendFrom(token, "192.0.2.1")).status).toBe(200);
  });

  test("[ID-23] shows use from another address after five minutes", async () => {
    await newPerson(admin, "lou");
    const token = await signIn("lou", "192.0.2.1", FIREFOX);
    const lou = admin.withToken(token);
    const findCurrent = async () =>
      (await lou.get<Session[]>("/api/v2/users/me/sessions")).find(({ current }) => current);
    await sendFrom(token, "192.0.2.9");
    expect((await findCurrent())?.ip_address).toBe("192.0.2.1");
    clock.advance(5 * MINUTE);
    // The use is written after the response, and before the next commit.
    await sendFrom(token, "192.0.2.9");
    await lou.post("/api/v2/users/me/keys/tokens", {});
    expect((await findCurrent())?.ip_address).toBe("192.0.2.9");
  });

  test("[ID-23][ID-10] revoking other sessions ends only their connections", async () => {
    const { owner_id, workspace_id } = await seedAgent(server);
    const createSession = async () => {
      const created = await admin.post<{ key: string }>(`/api/v2/users/${owner_id}/keys`);
      return admin.withToken(created.key);
    };
    const [currentSession, otherSession] = [await createSession(), await createSession()];
    const path = `/api/v2/workspaces/${workspace_id}/watch-ws`;
    const [current, revoked] = [await currentSession.socket(path), await otherSession.socket(path)];
    const events = await otherSession.fetch("GET", `/api/v2/workspaces/${workspace_id}/watch`);
    await currentSession.delete("/api/v2/users/me/sessions");
    expect((await revoked.closed).code).toBe(1008);
    expect(await events.text()).toContain("event: ping");
    expect(await Promise.race([current.closed, currentSession.get("/api/v2/users/me")])).toHaveProperty("username");
  });
});

describeInProcess("a token with scopes", () => {
  const createTokenClient = async (creator: Client, body: object): Promise<Client> => {
    const created = await creator.post<{ key: string }>("/api/v2/users/me/keys/tokens", body);
    return creator.withToken(created.key);
  };

  test("[ID-21] is listed with its scopes, and creates no keys with other scopes", async () => {
    const { client: may } = await newPerson(admin, "may");
    const { external } = await may.get<{ external: string[] }>("/api/v2/auth/scopes");
    expect(external).toContain("coder:workspaces.operate");
    const scopes = ["workspace:read", "api_key:create", "api_key:read", "api_key:update"];
    const scopedClient = await createTokenClient(may, {
      token_name: "narrow",
      scopes,
      scope: "coder:workspaces.operate",
    });
    const readToken = await may.get<ApiKey>("/api/v2/users/me/keys/tokens/narrow");
    expect(readToken).toMatchObject({ scope: "limited", scopes: ["coder:workspaces.operate", ...scopes] });
    expect(await fetchStatus(scopedClient, "GET", "/workspaces")).toBe(200);
    expect(await fetchStatus(scopedClient, "GET", "/users/me")).toBe(200);
    expect(await fetchStatus(scopedClient, "GET", "/users/me/gitsshkey")).toBe(403);
    const getCreateStatus = (body: object) => fetchStatus(scopedClient, "POST", "/users/me/keys/tokens", body);
    expect(await getCreateStatus({})).toBe(403);
    expect(await getCreateStatus({ scopes: ["all"] })).toBe(403);
    expect(await getCreateStatus({ scopes: ["workspace:*"] })).toBe(403);
    expect(await getCreateStatus({ scopes: ["workspace:start"] })).toBe(201);
    expect(await fetchStatus(scopedClient, "POST", "/users/me/keys")).toBe(403);
    expect(await fetchStatus(scopedClient, "PATCH", "/users/me/keys/tokens/narrow", { scopes: ["all"] })).toBe(403);
    expect(await fetchStatus(may, "POST", "/users/me/keys/tokens", { scopes: ["workspace:fly"] })).toBe(400);
    expect(await fetchStatus(may, "POST", "/users/me/keys/tokens", { scopes: ["coder:all"] })).toBe(201);
  });

  test("[ID-21][ID-10] uses changed scopes immediately, and its open connections end", async () => {
    const { owner_token, workspace_id } = await seedAgent(server);
    const owner = admin.withToken(owner_token);
    const token = await createTokenClient(owner, { token_name: "watcher", scopes: ["workspace:read"] });
    const socket = await token.socket(`/api/v2/workspaces/${workspace_id}/watch-ws`);
    const events = await token.fetch("GET", `/api/v2/workspaces/${workspace_id}/watch`);
    expect(events.status).toBe(200);
    const changed = await owner.patch<ApiKey>("/api/v2/users/me/keys/tokens/watcher", { scopes: ["template:read"] });
    expect(changed).toMatchObject({ scopes: ["template:read"], allowed_addresses: [] });
    expect((await socket.closed).code).toBe(1008);
    expect(await events.text()).toContain("event: ping");
    expect(await fetchStatus(token, "GET", `/workspaces/${workspace_id}`)).toBe(403);
    expect(await fetchStatus(token, "GET", "/templates")).toBe(200);
    const entries = await admin.get<{ audit_logs: { action: string; diff: Record<string, unknown> }[] }>(
      "/api/v2/audit?limit=1&q=resource_type:api_key%20action:write",
    );
    expect(entries.audit_logs[0]?.diff).toHaveProperty("scopes");
  });
});

describeInProcess("a token with an address range", () => {
  test("[ID-22] is valid only from its range, and creates no key with a larger range", async () => {
    const { client: ned } = await newPerson(admin, "ned");
    const body = { token_name: "office", allowed_addresses: ["192.0.2.0/24", "2001:db8:1::/48"] };
    const { key } = await ned.post<{ key: string }>("/api/v2/users/me/keys/tokens", body);
    for (const [address, status] of [
      ["192.0.2.77", 200],
      ["2001:db8:1:2::3", 200],
      ["192.0.3.1", 403],
      ["2001:db8:2::1", 403],
      ["::ffff:192.0.2.5", 200],
    ] as const) {
      expect([address, (await sendFrom(key, address)).status]).toEqual([address, status]);
    }
    const rejection = await sendFrom(key, "198.51.100.7");
    expect(((await rejection.json()) as { detail: string }).detail).toContain("is not valid from 198.51.100.7");
    const createKey = async (body: object) => {
      const response = await new Client(server.url).withToken(key).fetch("POST", "/api/v2/users/me/keys/tokens", body, {
        headers: { "x-forwarded-for": "192.0.2.77" },
      });
      return { status: response.status, key: ((await response.json()) as { key?: string }).key ?? "" };
    };
    expect((await createKey({ allowed_addresses: ["192.0.0.0/16"] })).status).toBe(403);
    expect((await createKey({ allowed_addresses: ["198.51.100.7"] })).status).toBe(403);
    expect((await createKey({ allowed_addresses: ["192.0.2.8/29"] })).status).toBe(201);
    const inherited = await createKey({ token_name: "child" });
    expect((await sendFrom(inherited.key, "192.0.3.1")).status).toBe(403);
    const session = await sendFrom(key, "192.0.2.77", "POST", "/api/v2/users/me/keys");
    const child = ((await session.json()) as { key: string }).key;
    expect((await sendFrom(child, "192.0.3.1")).status).toBe(403);
    expect((await sendFrom(child, "192.0.2.1")).status).toBe(200);
    for (const invalidRange of ["office", "192.0.2.0/33", "192.0.2.1,192.0.2.2", ""]) {
      expect(await fetchStatus(ned, "POST", "/users/me/keys/tokens", { allowed_addresses: [invalidRange] })).toBe(400);
    }
  });
});
