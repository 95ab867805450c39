// API tokens: creating, listing, limiting, expiring and revoking them.
import { describe, expect, test } from "bun:test";
import type { ApiKey } from "#schema/users/api-key.ts";
import type { Invitations } from "#schema/users/invitation.ts";
import { closeWhenKeyRevoked } from "#src/api/http/revocation.ts";
import type { Socket, SocketHandler } from "#src/api/http/socket.ts";
import { Client } from "#src/client.ts";
import { serverForFile } from "#test/support/for-file.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { ADMIN, startTestServer } from "#test/support/server.ts";
import { readStoredTexts } from "#test/support/stored.ts";
import { fetchStatus, newPerson, type Person } from "./people.ts";

const { server, admin } = await serverForFile();
const ben = await newPerson(admin, "ben");

const TOKENS = "/users/me/keys/tokens";
const createToken = async (client: Client, body: object = {}): Promise<string> =>
  (await client.post<{ key: string }>(`/api/v2${TOKENS}`, body)).key;

test("[ID-33] notifies a person of a key that an owner creates for them, and revokes it with the owner's role", async () => {
  const second = await newPerson(admin, "second", ["owner"]);
  const cy = await newPerson(admin, "cy");
  await admin.post("/api/v2/users", { email: "cibot@example.com", username: "cibot", login_type: "none" });
  const createFor = async (name: string, path = "/keys/tokens"): Promise<Client> =>
    cy.client.withToken((await second.client.post<{ key: string }>(`/api/v2/users/${name}${path}`, {})).key);
  const [token, session, robot] = [await createFor("cy"), await createFor("cy", "/keys"), await createFor("cibot")];
  const childToken = cy.client.withToken(await createToken(token));
  const ownToken = cy.client.withToken(await createToken(cy.client));
  const { notifications } = await cy.client.get<{ notifications: { title: string }[] }>("/api/v2/notifications/inbox");
  expect(notifications.map(({ title }) => title)).toEqual(
    Array.from({ length: 2 }, () => "second created a token for your account"),
  );
  const listed = await cy.client.get<ApiKey[]>(`/api/v2${TOKENS}`);
  expect(listed.map(({ created_by }) => created_by)).toEqual([second.user.id, second.user.id, undefined]);
  using stream = await token.socket("/api/v2/chats/watch");
  await admin.put(`/api/v2/users/${second.user.id}/roles`, { roles: [] });
  expect((await stream.closed).code).toBe(1008);
  const statuses = await Promise.all(
    [token, session, childToken, ownToken, robot].map((client) => fetchStatus(client, "GET", "/users/me")),
  );
  expect(statuses).toEqual([401, 401, 401, 200, 200]);
});

describe("a token", () => {
  test("[ID-8] signs in like a session, has a name, and is listed without its secret", async () => {
    const key = await createToken(ben.client, { token_name: "laptop" });
    expect(key).toMatch(/^[A-Za-z0-9]{10}-[A-Za-z0-9]{22}$/);
    expect(await fetchStatus(ben.client.withToken(key), "GET", "/users/me")).toBe(200);
    const [id = "", secret = ""] = key.split("-");
    const listed = await ben.client.get<ApiKey[]>(`/api/v2${TOKENS}`);
    expect(listed.find((key) => key.id === id)).toMatchObject({
      token_name: "laptop",
      scope: "all",
      lifetime_seconds: 604_800,
      login_type: "token",
      username: "ben",
    });
    expect(JSON.stringify(listed)).not.toContain(secret);
    expect(await ben.client.get<ApiKey>(`/api/v2${TOKENS}/laptop`)).toMatchObject({ id });
    expect(await ben.client.get<ApiKey>(`/api/v2/users/me/keys/${id}`)).toMatchObject({ id });
  });

  test("[ID-8] has a name that is unique among its user's tokens, even in a race", async () => {
    const statuses = await Promise.all(
      [1, 2, 3].map(() => fetchStatus(ben.client, "POST", TOKENS, { token_name: "ci" })),
    );
    expect(statuses.sort()).toEqual([201, 409, 409]);
    expect(await fetchStatus(admin, "POST", TOKENS, { token_name: "ci" })).toBe(201);
    await createToken(ben.client);
    await createToken(ben.client);
  });

  test("[ID-8] records its first use immediately", async () => {
    const key = await createToken(ben.client);
    const readKey = () => ben.client.get<ApiKey>(`/api/v2/users/me/keys/${key.slice(0, 10)}`);
    const { last_used, created_at } = await readKey();
    expect(last_used).toBe(created_at);
    // The last use is written after the response, so this polls until it is there; a clock may tick late.
    while ((await readKey()).last_used === created_at) await ben.client.withToken(key).get("/api/v2/users/me");
  });

  test.each([
    [{ lifetime: 0 }, 604_800],
    [{ lifetime: 3_600_000_000_000 }, 3600],
    [{ lifetime: "168h" }, 604_800],
    [{ lifetime: "1h30m" }, 5400],
    [{ lifetime: "30d" }, 2_592_000],
    [{ lifetime: 3_155_760_000_000_000_000 }, 3_155_760_000],
  ])("[ID-9] with %j is valid for %i seconds", async (body, seconds) => {
    const key = await createToken(ben.client, body);
    const storedKey = await ben.client.get<ApiKey>(`/api/v2/users/me/keys/${key.slice(0, 10)}`);
    expect(storedKey.lifetime_seconds).toBe(seconds);
  });

  test.each([
    [{ lifetime: 604_800 }],
    [{ lifetime: -1 }],
    [{ lifetime: "soon" }],
    [{ lifetime: "-5h" }],
    [{ lifetime: "10ms" }],
    [{ lifetime: "876601h" }],
    [{ scope: "everything" }],
    [{ scopes: ["all", "nothing"] }],
    [{ token_name: "a/b" }],
    [{ token_name: "x".repeat(65) }],
    [{ allow_list: [{ type: "workspace", id: "*" }] }],
    [{ lifetime: true }],
  ])("[ID-9] with %j is rejected and not created", async (body) => {
    const before = await ben.client.get<ApiKey[]>(`/api/v2${TOKENS}`);
    expect(await fetchStatus(ben.client, "POST", TOKENS, body)).toBe(400);
    expect(await ben.client.get<ApiKey[]>(`/api/v2${TOKENS}`)).toHaveLength(before.length);
  });

  test("[ID-9] of an owner is valid for at most a week", async () => {
    const getMaxLifetime = (client: Client) =>
      client.get<{ max_token_lifetime: number }>(`/api/v2${TOKENS}/tokenconfig`);
    expect(await getMaxLifetime(admin)).toEqual({ max_token_lifetime: 168 * 3600 * 1e9 });
    expect(await getMaxLifetime(ben.client)).toEqual({ max_token_lifetime: 876_600 * 3600 * 1e9 });
    expect(await fetchStatus(admin, "POST", TOKENS, { lifetime: "169h" })).toBe(400);
  });

  test("[ID-22] creates no key that expires later", async () => {
    const hourToken = await createToken(ben.client, { lifetime: "1h", scopes: ["all"] });
    const maxExpiry = (await ben.client.get<ApiKey>(`/api/v2/users/me/keys/${hourToken.slice(0, 10)}`)).expires_at;
    const holder = ben.client.withToken(hourToken);
    const rejected = await holder.fetch("POST", `/api/v2${TOKENS}`, { lifetime: "2h" });
    expect([rejected.status, await rejected.text()]).toEqual([400, expect.stringContaining("ends no later")]);
    const shorterToken = await createToken(holder, { lifetime: "30m", scopes: ["user:read"] });
    const defaultToken = await createToken(holder, { scopes: ["api_key:*"] });
    const session = (await holder.post<{ key: string }>("/api/v2/users/me/keys")).key;
    const getExpiry = async (key: string) =>
      (await ben.client.get<ApiKey>(`/api/v2/users/me/keys/${key.slice(0, 10)}`)).expires_at;
    for (const key of [shorterToken, defaultToken, session]) expect((await getExpiry(key)) <= maxExpiry).toBe(true);
    // The new key is a token, because use would extend the lifetime of a session.
    expect((await ben.client.get<ApiKey[]>(`/api/v2${TOKENS}`)).map(({ id }) => id)).toContain(session.slice(0, 10));
    expect(
      await fetchStatus(ben.client.withToken(defaultToken), "POST", TOKENS, {
        lifetime: "3h",
        scopes: ["api_key:read"],
      }),
    ).toBe(400);
    // An owner's token with full access is not limited in what it may do for other users.
    const ownersToken = admin.withToken(await createToken(admin, { lifetime: "1h" }));
    expect(await fetchStatus(ownersToken, "POST", "/users/ben/keys/tokens", { lifetime: "30d" })).toBe(201);
    const scopedOwner = admin.withToken(await createToken(admin, { lifetime: "1h", scopes: ["api_key:*"] }));
    expect(
      await fetchStatus(scopedOwner, "POST", "/users/ben/keys/tokens", { lifetime: "30d", scopes: ["api_key:read"] }),
    ).toBe(400);
  });

  test("[ID-22] gives no more access to another token that expires later", async () => {
    const change = (client: Client, token: string, body: object) =>
      fetchStatus(client, "PATCH", `${TOKENS}/${token}`, body);
    const settings = { scopes: ["user:read"], lifetime: "30d", allowed_addresses: ["127.0.0.0/8"] };
    for (const [token_name, body] of [
      ["late", settings],
      ["early", { ...settings, lifetime: "10m" }],
      ["short", { lifetime: "30m" }],
    ] as const)
      await createToken(ben.client, { token_name, ...body });
    const shortLived = ben.client.withToken(await createToken(ben.client, { lifetime: "30m" }));
    for (const body of [
      { scopes: ["all"] },
      { scopes: ["user:read", "workspace:read"] },
      { scopes: ["workspace:ssh"] },
      { allowed_addresses: [] },
      { allowed_addresses: ["0.0.0.0/0"] },
      { allowed_addresses: ["127.0.0.0/8", "192.0.2.1"] },
      { scopes: ["user:*"], allowed_addresses: ["127.0.0.1"] },
    ]) {
      expect([body, await change(shortLived, "late", body)]).toEqual([body, 403]);
      // This token expires before the one of the request.
      expect([body, await change(shortLived, "early", body)]).toEqual([body, 200]);
    }
    expect(await change(shortLived, "late", { scopes: ["user:read"], allowed_addresses: ["127.0.0.1"] })).toBe(200);
    expect(await change(shortLived, "short", { scopes: ["user:read"] })).toBe(200);
    expect(await change(ben.client, "late", { scopes: ["all"], allowed_addresses: [] })).toBe(200);
    // An owner's token with full access is not limited in what it may do for other users.
    const ownersToken = admin.withToken(await createToken(admin, { lifetime: "1h" }));
    expect(await fetchStatus(ownersToken, "PATCH", "/users/ben/keys/tokens/late", { scopes: ["user:read"] })).toBe(200);
    expect(await fetchStatus(ownersToken, "PATCH", "/users/ben/keys/tokens/late", { scopes: ["all"] })).toBe(200);
  });

  test("[ID-9] with the scope application_connect gives access to applications and not to the API", async () => {
    const key = await createToken(ben.client, { scope: "application_connect" });
    expect(await fetchStatus(ben.client.withToken(key), "GET", "/users/me")).toBe(403);
    expect(await fetchStatus(ben.client.withToken(key), "POST", TOKENS, {})).toBe(403);
  });

  test("[ID-32] can assign roles only if it has full access", async () => {
    const { user } = await newPerson(admin, "rolf");
    const [{ id: organization } = { id: "" }] = await admin.get<{ id: string }[]>("/api/v2/users/me/organizations");
    const everything = ["user:*", "organization_member:*", "organization:*", "workspace:*"];
    const scopedClient = admin.withToken(await createToken(admin, { scopes: everything }));
    const fullClient = admin.withToken(await createToken(admin));
    const invite = (email: string, roles: object) =>
      ["POST", "/invitations", { people: [{ email }], ...roles }] as const;
    const changes = [
      ["PUT", `/users/${user.id}/roles`, { roles: ["auditor"] }],
      ["PUT", `/organizations/${organization}/members/${user.id}/roles`, { roles: ["organization-auditor"] }],
      ["POST", "/users", { username: "robot", service_account: true, roles: ["owner"] }],
      invite("one@example.com", { roles: ["owner"] }),
      invite("two@example.com", { organization_roles: ["organization-admin"] }),
    ] as const;
    for (const [method, path, body] of changes) {
      const rejected = await scopedClient.fetch(method, `/api/v2${path}`, body);
      expect([path, rejected.status, await rejected.text()]).toEqual([
        path,
        403,
        expect.stringMatching(/everything|full access/),
      ]);
      expect([path, (await fetchStatus(fullClient, method, path, body)) < 300]).toEqual([path, true]);
    }
    // A new link for an invitation also gives its roles.
    const { invitations } = await admin.get<Invitations>("/api/v2/invitations");
    const invitationId = invitations.find(({ email }) => email === "one@example.com")?.id;
    expect(await fetchStatus(scopedClient, "POST", `/invitations/${invitationId}/resend`, { by: "link" })).toBe(403);
    for (const [method, path, body] of [
      ["POST", "/users", { username: "plain", service_account: true, roles: ["member"] }],
      invite("three@example.com", { roles: [] }),
    ] as const)
      expect([path, await fetchStatus(scopedClient, method, path, body)]).toEqual([path, 201]);
  });

  test("[ID-10] becomes invalid immediately when it is deleted or expired", async () => {
    for (const [method, suffix] of [
      ["DELETE", ""],
      ["PUT", "/expire"],
    ] as const) {
      const key = await createToken(ben.client);
      const id = key.slice(0, 10);
      expect(await fetchStatus(ben.client.withToken(key), "GET", "/users/me")).toBe(200);
      expect(await fetchStatus(ben.client, method, `/users/me/keys/${id}${suffix}`)).toBe(204);
      expect(await fetchStatus(ben.client.withToken(key), "GET", "/users/me")).toBe(401);
      const expired = await ben.client.get<ApiKey[]>(`/api/v2${TOKENS}?include_expired=true`);
      expect(expired.some((key) => key.id === id)).toBe(method === "PUT");
    }
  });

  test("[ID-11] is not accessible to other users", async () => {
    const { client: carl } = await newPerson(admin, "carl");
    const id = (await createToken(ben.client)).slice(0, 10);
    expect(await fetchStatus(carl, "GET", `/users/me/keys/${id}`)).toBe(404);
    expect(await fetchStatus(carl, "DELETE", `/users/me/keys/${id}`)).toBe(404);
    expect(await fetchStatus(carl, "GET", `/users/ben/keys/${id}`)).toBe(404);
    expect(await fetchStatus(carl, "POST", "/users/ben/keys")).toBe(404);
    const { client: helper } = await newPerson(admin, "helper", ["user-admin"]);
    expect(await fetchStatus(helper, "POST", "/users/ben/keys")).toBe(403);
    expect(await fetchStatus(helper, "POST", "/users/ben/keys/tokens", {})).toBe(403);
    const carlsKeys = await carl.get<ApiKey[]>(`/api/v2${TOKENS}?include_all=true`);
    expect(carlsKeys).toEqual([]);
    const allKeys = await admin.get<ApiKey[]>(`/api/v2${TOKENS}?include_all=true`);
    expect(allKeys.some(({ username }) => username === "ben")).toBe(true);
  });

  test("[ID-8] a key for a browser is a separate session", async () => {
    const { key } = await ben.client.post<{ key: string }>("/api/v2/users/me/keys");
    expect(await fetchStatus(ben.client.withToken(key), "POST", "/users/logout")).toBe(200);
    expect(await fetchStatus(ben.client.withToken(key), "GET", "/users/me")).toBe(401);
    expect(await fetchStatus(ben.client, "GET", "/users/me")).toBe(200);
  });
});

describe("expiry", () => {
  testInProcess("[ID-9] a token expires; a session continues while it is used", async () => {
    const clock = new ManualClock();
    await using timedServer = await startTestServer({ clock });
    const session = await new Client(timedServer.url).signIn(ADMIN.email, ADMIN.password);
    const token = session.withToken(await createToken(session, { lifetime: "2h" }));
    clock.advance(2 * 3_600_000 - 1);
    expect(await fetchStatus(token, "GET", "/users/me")).toBe(200);
    clock.advance(1);
    const response = await token.fetch("GET", "/api/v2/users/me");
    expect(response.status).toBe(401);
    const body = (await response.json()) as { detail: string; kind?: string };
    expect(body.detail).toContain("expired at 2030-01-01T02:00:00.000Z");
    // Only a revoked key has a kind, upon which the browser deletes the person's data.
    expect(body.kind).toBeUndefined();
    for (let hourToken = 0; hourToken < 40; hourToken += 20) {
      clock.advance(20 * 3_600_000);
      expect(await fetchStatus(session, "GET", "/users/me")).toBe(200);
      // The use is written after the response, and before the next commit.
      await createToken(session);
    }
    clock.advance(24 * 3_600_000 + 1);
    expect(await fetchStatus(session, "GET", "/users/me")).toBe(401);
  });
});

describe("storage", () => {
  test("[ID-8] no file of the data directory contains an issued token or password", async () => {
    const tokens = [await createToken(ben.client), await createToken(admin, { token_name: "grep-me" })];
    const secrets = tokens.map((token) => token.slice(11));
    const texts = await readStoredTexts(server.directory);
    for (const secret of [...secrets, ADMIN.password]) expect(texts.some((text) => text.includes(secret))).toBe(false);
    // The public half is there, so the search looks in the right place.
    expect(texts.some((text) => text.includes((tokens[0] as string).slice(0, 10)))).toBe(true);
  });

  test("[ID-8] digests are compared in constant time", async () => {
    const source = await Bun.file(new URL("../../../src/api/http/identify.ts", import.meta.url)).text();
    expect(source).toContain("isSameDigest(");
    expect(source).not.toMatch(/secret_hash\s*[!=]==|[!=]==\s*key\.secret_hash/);
    expect(await Bun.file(new URL("../../../src/base/ids.ts", import.meta.url)).text()).toContain("timingSafeEqual(");
  });
});

describe("a key's open connections", () => {
  type Revocation = (person: Person, keyId: string) => Promise<unknown>;
  const revocations: [string, Revocation][] = [
    ["deleting it", (person, id) => person.client.delete(`/api/v2/users/me/keys/${id}`)],
    ["expiring it", (person, id) => person.client.put(`/api/v2/users/me/keys/${id}/expire`)],
    ["suspending its user", (person) => admin.put(`/api/v2/users/${person.user.id}/status/suspend`)],
    ["deleting its user", (person) => admin.delete(`/api/v2/users/${person.user.id}`)],
    [
      "a new password",
      (person) => admin.put(`/api/v2/users/${person.user.id}/password`, { password: "new-and-long-enough" }),
    ],
  ];

  testInProcess.each(revocations)("[ID-10] end after %s", async (name, revoke) => {
    const context = server.context;
    if (!context) throw new Error("needs the server in this process");
    const person = await newPerson(admin, `w${name.replaceAll(/[^a-z]/g, "")}`);
    const id = (await createToken(person.client)).slice(0, 10);
    const caller = { kind: "user", user_id: person.user.id, key_id: id } as never;
    const { promise, resolve } = Promise.withResolvers<number>();
    const socket = { close: (code: number) => resolve(code) } as unknown as Socket;
    const initialTopics = context.topics.size;
    const handler: SocketHandler = closeWhenKeyRevoked(context, caller, {});
    handler.open?.(socket);
    await revoke(person, id);
    expect(await promise).toBe(1008);
    expect(context.topics.size).toBe(initialTopics);
  });

  testInProcess("[ID-10] end even if the key is revoked during the connection setup", async () => {
    const context = server.context;
    if (!context) throw new Error("needs the server in this process");
    const { promise, resolve } = Promise.withResolvers<number>();
    const caller = { kind: "user", user_id: ben.user.id, key_id: "nosuchkey0" } as never;
    closeWhenKeyRevoked(context, caller, {}).open?.({ close: resolve } as unknown as Socket);
    expect(await promise).toBe(1008);
  });
});
