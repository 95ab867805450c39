// Signing in and out with a password.
import { describe, expect, test } from "bun:test";
import type { User } from "#schema/users/user.ts";
import { Client } from "#src/client.ts";
import { serverForFile } from "#test/support/for-file.ts";
import { ADMIN, startTestServer } from "#test/support/server.ts";
import { fetchStatus, newPerson, PASSWORD } from "./people.ts";

const { anonymous, admin } = await serverForFile();

const login = (email: string, password: string, headers?: Record<string, string>) =>
  anonymous.fetch("POST", "/api/v2/users/login", { email, password }, headers ? { headers } : {});

describe("signing in", () => {
  test("[ID-1] the user from the settings can sign in and is the owner", async () => {
    const user = await admin.get<User>("/api/v2/users/me");
    expect(user).toMatchObject({ username: ADMIN.username, email: ADMIN.email, status: "active" });
    expect(user.roles.map((role) => role.name)).toEqual(["owner"]);
    expect(user.organization_ids).toHaveLength(1);
    expect(await admin.get<{ id: string }>("/api/v2/organizations/default")).toMatchObject({
      id: user.organization_ids[0] as string,
      name: "default",
    });
  });

  test("[ID-3] the response is 201 with a token, and a cookie that scripts and other sites cannot use", async () => {
    const response = await login(ADMIN.email.toUpperCase(), ADMIN.password);
    expect(response.status).toBe(201);
    const { session_token } = (await response.json()) as { session_token: string };
    expect(session_token).toMatch(/^[A-Za-z0-9]{10}-[A-Za-z0-9]{22}$/);
    const cookie = response.headers.get("set-cookie") ?? "";
    expect(cookie).toStartWith(`service_session_token=${session_token}; Path=/; HttpOnly; SameSite=Lax`);
    expect(cookie).not.toContain("Secure");
    const cookieResponse = await anonymous.fetch("GET", "/api/v2/users/me", undefined, {
      headers: { cookie: `service_session_token=${session_token}` },
    });
    expect(cookieResponse.status).toBe(200);
  });

  test("[ID-3] behind https, the cookie is marked Secure", async () => {
    await using secureServer = await startTestServer({
      env: { SLIPWAY_ACCESS_URL: "https://slipway.example", SLIPWAY_ALLOWED_HOSTS: "127.0.0.1" },
    });
    const response = await new Client(secureServer.url).fetch("POST", "/api/v2/users/login", ADMIN);
    expect(response.headers.get("set-cookie")).toEndWith("; Secure");
  });

  test("[ID-31] behind https, a page of another host cannot plant a session in a browser", async () => {
    await using secureServer = await startTestServer({
      env: { SLIPWAY_ACCESS_URL: "https://slipway.example", SLIPWAY_ALLOWED_HOSTS: "127.0.0.1" },
    });
    const client = new Client(secureServer.url);
    const loginResponse = await client.fetch("POST", "/api/v2/users/login", ADMIN);
    expect(loginResponse.headers.get("set-cookie")).toStartWith("__Host-service_session_token=");
    const { session_token: token } = (await loginResponse.json()) as { session_token: string };
    const getStatus = async (cookie: string, headers: Record<string, string> = {}) =>
      (await client.fetch("GET", "/api/v2/users/me", undefined, { headers: { cookie, ...headers } })).status;
    const pageHeaders = { "sec-fetch-site": "same-origin" };
    expect(await getStatus(`service_session_token=planted; __Host-service_session_token=${token}`, pageHeaders)).toBe(
      200,
    );
    expect(await getStatus(`\u00a0__Host-service_session_token=${token}`, pageHeaders)).toBe(401);
    expect(await getStatus(`coder_session_token=planted; __Host-service_session_token=${token}`, pageHeaders)).toBe(
      200,
    );
    for (const name of ["service_session_token", "coder_session_token"]) {
      expect(await getStatus(`${name}=${token}`, pageHeaders)).toBe(401);
      expect(await getStatus(`${name}=${token}`, { origin: "https://slipway.example" })).toBe(401);
      // Programs may send the cookie themselves.
      expect(await getStatus(`${name}=${token}`)).toBe(200);
    }
    const logoutResponse = await client.fetch("POST", "/api/v2/users/logout", undefined, {
      headers: { cookie: `__Host-service_session_token=${token}`, origin: "https://slipway.example" },
    });
    expect(logoutResponse.headers.get("set-cookie")).toStartWith("__Host-service_session_token=; Path=/; ");
  });

  test("[ID-31] rejects two different session cookies, because one may be planted", async () => {
    const { session_token: token } = (await (await login(ADMIN.email, ADMIN.password)).json()) as {
      session_token: string;
    };
    const sendCookie = (cookie: string) =>
      anonymous.fetch("GET", "/api/v2/users/me", undefined, { headers: { cookie } });
    const bothResponse = await sendCookie(`service_session_token=planted; service_session_token=${token}`);
    expect(bothResponse.status).toBe(401);
    expect(await bothResponse.json()).toMatchObject({
      detail: expect.stringContaining("two different session cookies"),
    });
    expect((await sendCookie(`service_session_token=${token}; service_session_token=${token}`)).status).toBe(200);
  });

  test("[ID-4] an unknown address and a wrong password get the same response", async () => {
    const [unknown, invalid] = await Promise.all([login("unknown@example.com", "x"), login(ADMIN.email, "x")]);
    expect([unknown.status, invalid.status]).toEqual([401, 401]);
    const texts = await Promise.all([unknown.text(), invalid.text()]);
    expect(texts[0]).toBe(texts[1] as string);
    expect(invalid.headers.get("www-authenticate")).toBe("Bearer");
  });

  test("[ID-4] an account without a password accepts none, not even an empty one", async () => {
    await admin.post("/api/v2/users", { email: "robot@example.com", username: "robot", login_type: "none" });
    expect((await login("robot@example.com", "")).status).toBe(401);
    expect((await login("", "")).status).toBe(401);
  });

  test("[ID-12] a new account is dormant until it signs in; a suspended one cannot sign in until it is activated", async () => {
    const created = await admin.post<User>("/api/v2/users", {
      email: "zoe@example.com",
      username: "zoe",
      password: PASSWORD,
    });
    expect(created.status).toBe("dormant");
    expect(created.last_seen_at).toBeUndefined();
    const zoe = await anonymous.signIn("zoe@example.com", PASSWORD);
    expect((await zoe.get<User>("/api/v2/users/me")).status).toBe("active");
    const { key } = await zoe.post<{ key: string }>("/api/v2/users/me/keys/tokens", {});
    await admin.put("/api/v2/users/zoe/status/suspend");
    const rejected = await login("zoe@example.com", PASSWORD);
    expect(rejected.status).toBe(401);
    expect(await fetchStatus(zoe, "GET", "/users/me")).toBe(401);
    expect((await admin.put<User>("/api/v2/users/zoe/status/activate")).status).toBe("active");
    expect([
      await fetchStatus(zoe, "GET", "/users/me"),
      await fetchStatus(zoe.withToken(key), "GET", "/users/me"),
    ]).toEqual([401, 401]);
    const newSession = await anonymous.signIn("zoe@example.com", PASSWORD);
    expect(await newSession.get<unknown[]>("/api/v2/users/me/keys/tokens")).toEqual([]);
    expect(await newSession.get<unknown[]>("/api/v2/users/me/sessions")).toHaveLength(1);
  });

  test("[ID-5] returns 429 for more than 60 attempts a minute for one address", async () => {
    const statuses = await Promise.all(
      Array.from({ length: 61 }, async () => (await login("guess@example.com", "x")).status),
    );
    expect(statuses.filter((status) => status === 429)).toHaveLength(1);
    const lateResponse = await login("GUESS@example.com", "x");
    expect(lateResponse.status).toBe(429);
    expect(lateResponse.headers.get("retry-after")).not.toBeNull();
    expect((await login(ADMIN.email, ADMIN.password)).status).toBe(201);
  });

  test.each([
    [{}, 400],
    [{ email: ADMIN.email }, 400],
    [{ email: 1, password: "x" }, 400],
    [[], 400],
  ])("[ID-3] the body %j returns %i", async (body, status) => {
    expect(await fetchStatus(anonymous, "POST", "/users/login", body)).toBe(status);
  });
});

describe("signing out", () => {
  test("[ID-3] deletes the key and clears the cookie", async () => {
    const secondSession = await anonymous.signIn(ADMIN.email, ADMIN.password);
    const response = await secondSession.fetch("POST", "/api/v2/users/logout");
    expect(response.status).toBe(200);
    expect(response.headers.get("set-cookie")).toContain("Max-Age=0");
    expect(await fetchStatus(secondSession, "GET", "/users/me")).toBe(401);
    expect(await fetchStatus(admin, "GET", "/users/me")).toBe(200);
  });
});

describe("passwords", () => {
  test("[ID-7] setting a new password requires the old one, and revokes every other key", async () => {
    const { client: currentSession } = await newPerson(admin, "pat");
    const otherSession = await anonymous.signIn("pat@example.com", PASSWORD);
    const { key } = await currentSession.post<{ key: string }>("/api/v2/users/me/keys/tokens", {});
    const newPassword = "quite-another-secret";
    const putPassword = (body: object) => fetchStatus(currentSession, "PUT", "/users/me/password", body);
    expect(await putPassword({ old_password: "wrong", password: newPassword })).toBe(400);
    expect(await putPassword({ password: newPassword })).toBe(400);
    expect(await putPassword({ old_password: PASSWORD, password: "short" })).toBe(400);
    expect(await putPassword({ old_password: PASSWORD, password: newPassword })).toBe(204);
    expect(await fetchStatus(currentSession, "GET", "/users/me")).toBe(200);
    expect(await fetchStatus(otherSession, "GET", "/users/me")).toBe(401);
    expect(await fetchStatus(currentSession.withToken(key), "GET", "/users/me")).toBe(401);
    expect((await login("pat@example.com", PASSWORD)).status).toBe(401);
    expect((await login("pat@example.com", newPassword)).status).toBe(201);
  });
});
